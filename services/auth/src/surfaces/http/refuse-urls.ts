import { errors } from '../../errors.ts';
import type { Api } from './api.ts';

/**
 * Refuses requests by their URL, before the body is read: those to a path that does not exist, and those with a NUL, which PostgreSQL
 * can neither store nor look for.
 */
export function addUrlRefusals(api: Api): void {
  api.addHook('onRequest', (request, _reply, done) => {
    if (request.url.includes('%00'))
      done(errors.validation_failed({ message: 'The URL must not contain the character NUL (%00)' }));
    else if (request.is404) done(errors.not_found());
    else done();
  });
}
