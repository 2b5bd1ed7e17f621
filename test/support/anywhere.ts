/**
 * Where servers of customers listen: at any free port of 127.0.0.1. `backlog`: the number of connections that
 * may wait until the server accepts them. With Node's 511, the system drops connections while all CPUs are
 * busy. It repeats their handshakes after 1, 2, 4 and 8 seconds, which looks like a server that hangs.
 */
export const anywhere = { port: 0, host: '127.0.0.1', backlog: 4_096 } as const
