import type { UnaryHandler } from '../../../src/call.ts';
import { Code, GrpcStatus } from '../../../src/status.ts';

/** A handler of each kind: they reply at once, later, with much, with a failure, or never. */
export const fuzzMethods: Readonly<Record<string, UnaryHandler>> = {
  '/test.Echo/Call': (message) => message,
  '/test.Echo/Later': (message) => new Promise((resolve) => setImmediate(resolve, message)),
  '/test.Echo/Large': () => Buffer.alloc(100_000, 'x'),
  '/test.Echo/Status': () => new GrpcStatus(Code.NOT_FOUND, 'nothing: 100 % ä'),
  '/test.Echo/Throws': () => {
    throw new Error('thrown');
  },
  '/test.Echo/Rejects': () => Promise.reject(new Error('rejected')),
  '/test.Echo/Aborts': (message, call) =>
    new Promise((resolve) => call.signal.addEventListener('abort', () => resolve(message), { once: true })),
  '/test.Echo/Never': () => new Promise(() => undefined),
  // The paths that Envoy calls.
  '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit': () => Buffer.from([0x08, 1]),
  '/envoy.service.auth.v3.Authorization/Check': () => Buffer.alloc(0),
};
