import { readCookie, setCookie } from '../http/cookies.ts';
import { isEqualSecret } from '../keys/secrets.ts';
import { toObject } from '../outbound/post-form.ts';
import type { Visit } from './visit.ts';

/** Never passwords and codes. */
const keptFields = ['email', 'friendly_name', 'identifier', 'phone'] as const;
type TypedFields = Readonly<Partial<Record<(typeof keptFields)[number], string>>>;

/** A cookie has at most 4 kB. Longer texts are not kept. */
const maxPayloadChars = 2_048;
const maxAgeSeconds = 600;
const typedCookie = { name: 'typed', form: /^[\w-]+\.[\w-]{43}$/ } as const;

/**
 * Keeps what the user typed while another page comes first, in a cookie rather than the URL: it is
 * in no log, and a link of another site cannot fill in a form. The signature binds it to the
 * browser and the user.
 */
export function keepTyped(visit: Visit): void {
  const { settings } = visit.context;
  const fields = keptFields.flatMap((name) => {
    const value = visit.form[name];
    return value === undefined || value === '' ? [] : [[name, value]];
  });
  if (fields.length === 0) return;
  const payload = Buffer.from(JSON.stringify(Object.fromEntries(fields))).toString('base64url');
  if (payload.length > maxPayloadChars) return;
  setCookie(visit.reply, [typedCookie.name, `${payload}.${sign(visit, payload)}`], {
    settings,
    maxAgeSeconds,
  });
}

/** Reads the text of `keepTyped`, once. */
export function takeTyped(visit: Visit): TypedFields {
  const { settings } = visit.context;
  const cookie = readCookie(visit.request, { ...typedCookie, settings });
  if (cookie === undefined) return {};
  setCookie(visit.reply, [typedCookie.name, ''], { settings, maxAgeSeconds: 0 });
  const [payload = '', signature = ''] = cookie.split('.');
  if (!isEqualSecret(signature, sign(visit, payload))) return {};
  const fields = toObject(JSON.parse(Buffer.from(payload, 'base64url').toString()));
  return Object.fromEntries(
    keptFields.flatMap((name) => (typeof fields[name] === 'string' ? [[name, fields[name]]] : [])),
  );
}

function sign(visit: Visit, payload: string): string {
  return visit.derive(`typed ${visit.owner?.user.id ?? ''} ${payload}`);
}
