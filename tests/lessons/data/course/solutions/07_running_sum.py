# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # 07 · The running sum
# A lesson of four short cells, for the tests of the build.

# %% tags=["helper"]
from autograder.check import check


def twice(x):
    return 2 * x


# %% [markdown]
# ## Your turn
# Keep the sum of what has been seen; `twice` is given.
#
# No loop is needed.

# %% exercise="running_sum"
# Two functions: the second uses the first.
from reference_numpy.running_sum import add, running_sum  # include

# %% tags=["check"]
check(running_sum)

# %% exercise="add_kernel"
# include cupy_kernels/add.cu as ADD_KERNEL
launch = {"grid": "N // 256", "block": 256}

# %% tags=["check"]
check(ADD_KERNEL, "add_kernel")


# %% exercise="mean" tags=["helper"]
def mean(values):
    total = sum(values)
    if not values:
        ### BEGIN SOLUTION
        return 0.0
        ### END SOLUTION
    ### BEGIN SOLUTION
    count = len(values)

    return total / count
    ### END SOLUTION


# %% tags=["check"]
check(mean)
