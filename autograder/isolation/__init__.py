"""A submission in a process of its own, which holds nothing worth stealing.

The judge (parent) keeps the HBM arrays, the meter, the oracle and the verdict. The student's
process (child) gets its own source, and tiles on request; bytes come back, and nothing else is
believed. What each file is for:

    isolated.py        the candidate the examinations see; serves loads and stores
    channel.py         the judge's end of the two pipes: deadlines, sizes, garbage
    frames.py          what one message looks like on the wire
    sandbox.py         the one place that builds the child's command line, environment and rooms
    limits.py          seconds, memory, output; the child puts them on itself before any cell runs
    process_tree.py    ending the child and everything it started
    child.py           the child's main loop
    remote_machine.py  a Machine whose HBM is at the other end of the pipe

What it does not do: hide the file system or other processes of the same user, or cut off the
network. `Sandbox.wrap` is the place to put a stronger wall around the same child.
"""
