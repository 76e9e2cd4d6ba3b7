/** Type of the resources that are served, as ADS has it. */
export const rateLimitConfigType = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';
