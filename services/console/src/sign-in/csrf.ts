import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { errors } from '../errors.ts';
import type { Session } from './sessions.ts';

/** The field of forms with the token of the session. */
export const csrfField = '_csrf';

/**
 * Checks that a form is of our own page, in this session: by where the browser says that the
 * request comes from, and by a token that other sites cannot read.
 *
 * @throws AppError `form_rejected`
 */
export function checkForm(
  session: Session,
  form: URLSearchParams,
  { headers, externalUrl }: { readonly headers: IncomingHttpHeaders; readonly externalUrl: string },
): void {
  const { origin, 'sec-fetch-site': site } = headers;
  const isForeign =
    (origin !== undefined && origin !== externalUrl) || (site !== undefined && site !== 'same-origin');
  if (isForeign || !isEqual(form.get(csrfField) ?? '', session.csrfToken)) throw errors.form_rejected();
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
