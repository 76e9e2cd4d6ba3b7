import type { Api } from './api.ts';

/** Longest part of `X-Forwarded-For` that is read, from its end: two dozen proxies. Each address costs a look at all trusted networks. */
const maxChars = 1024;

/** Forgets the beginning of an overlong `X-Forwarded-For`, which is what clients make up: each proxy adds to the end. */
export function addForwardedForBound(api: Api): void {
  api.addHook('onRequest', ({ raw: { headers } }, _reply, done) => {
    const header = headers['x-forwarded-for'];
    if (typeof header === 'string' && header.length > maxChars)
      headers['x-forwarded-for'] = header.slice(header.indexOf(',', header.length - maxChars) + 1);
    done();
  });
}
