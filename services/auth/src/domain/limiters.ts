/** Things that each client address may do only so often; the settings say how often. */
export type Limiter = 'otp' | 'verify' | 'token' | 'anonymous' | 'factor';
