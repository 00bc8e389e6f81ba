// Y = Xᵀ by way of shared memory, a tile of 32 × 32 elements a block.
//
// Read X by rows and write Y by columns, and every store of a warp touches 32 sectors. So the tile
// turns on the chip: its rows come from rows of X, its columns go to rows of Y, and HBM sees whole
// rows only. How long the tile's rows are decides in which banks the elements of a column lie.
//
//   grid  (⌈columns / 32⌉, ⌈rows / 32⌉)      block (32, 8)

#define TILE 32
#define THREAD_ROWS 8  // rows of the block: a thread moves TILE / THREAD_ROWS elements each way

extern "C" __global__ void transpose(
    const float* __restrict__ x,  // [rows, columns]
    float* __restrict__ y,        // [columns, rows]
    int rows, int columns) {
    const int top = blockIdx.y * TILE, left = blockIdx.x * TILE;  // the tile's corner in X

    // ---- The tile: how many floats is a row of it long? -------------------------------------
    // BEGIN SOLUTION
    __shared__ float tile[TILE][TILE + 1];  // a column lies in 32 different banks
    // END SOLUTION

    // ---- Rows of X become rows of the tile --------------------------------------------------
    // tile[r][threadIdx.x] from X; the last tiles stick out of X.
    for (int r = threadIdx.y; r < TILE; r += THREAD_ROWS) {
        // BEGIN SOLUTION
        const int row = top + r, column = left + threadIdx.x;
        if (row < rows && column < columns) tile[r][threadIdx.x] = x[row * columns + column];
        // END SOLUTION
    }

    // ---- Columns of the tile become rows of Y -----------------------------------------------
    // Column r of the tile is a row of Y. First: who has written it, and when?
    // BEGIN SOLUTION
    __syncthreads();  // the elements of a column were put there by all the warps
    // END SOLUTION

    for (int r = threadIdx.y; r < TILE; r += THREAD_ROWS) {
        // BEGIN SOLUTION
        const int row = left + r, column = top + threadIdx.x;
        if (row < columns && column < rows) y[row * rows + column] = tile[threadIdx.x][r];
        // END SOLUTION
    }
}
