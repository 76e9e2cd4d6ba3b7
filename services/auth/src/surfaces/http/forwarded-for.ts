import type { Api } from './api.ts';

/** Longest part of `X-Forwarded-For` that is read, enough for two dozen proxies. Each address is matched against all trusted networks. */
const maxChars = 1024;

/** Cuts an overlong `X-Forwarded-For` at the front, which the client controls: proxies append to the end. */
export function addForwardedForBound(api: Api): void {
  api.addHook('onRequest', ({ raw: { headers } }, _reply, done) => {
    const header = headers['x-forwarded-for'];
    if (typeof header === 'string' && header.length > maxChars)
      headers['x-forwarded-for'] = header.slice(header.indexOf(',', header.length - maxChars) + 1);
    done();
  });
}
