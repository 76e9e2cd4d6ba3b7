/** Groups of endpoints that share a limit of requests per client address; a route names its own in `config.limiter`. */
export const limiters = ['otp', 'verify', 'token', 'anonymous', 'factor'] as const;

/** One of {@link limiters}. */
export type Limiter = (typeof limiters)[number];
