/** The one type that is served: `ratelimit.config.ratelimit.v3.RateLimitConfig`. */
export const rateLimitConfigTypeUrl = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';
