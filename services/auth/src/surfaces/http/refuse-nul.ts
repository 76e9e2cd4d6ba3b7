import { errors } from '../../errors.ts';
import type { Api } from './api.ts';

/** Refuses URLs that hold a NUL: PostgreSQL cannot store or look for it, and nobody means it. Bodies are looked at by their parsers. */
export function addNulRefusal(api: Api): void {
  api.addHook('onRequest', (request, _reply, done) => {
    if (request.url.includes('%00'))
      done(errors.validation_failed({ message: 'The URL must not contain the character NUL (%00)' }));
    else done();
  });
}
