// Every lane loops until its own number reaches 1, with a continue and a break on the way.
extern "C" __global__ void lane_trip_counts(const unsigned* start, unsigned* steps, unsigned* peak) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = start[i], n = 0, top = x;
    while (x != 1) {
        ++n;
        if (n == 40) break;
        if (x % 2 == 0) {
            x /= 2;
            continue;
        }
        x = 3 * x + 1;
        top = max(top, x);
    }
    steps[i] = n;
    peak[i] = top;
}
