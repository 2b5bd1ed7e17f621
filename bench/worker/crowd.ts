/**
 * `node crowd.ts`: computes until it is killed, out of registers. What a worker costs beside it that it doesn't cost alone is the
 * machine's part of what several processes cost more than one: it shares its core with whatever else runs, and its caches too.
 */
for (let value = 1; value !== 0; value = (value * 3 + 1) | 1);
