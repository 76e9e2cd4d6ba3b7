import { createHmac, randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { readCookie, setCookie } from '../http/cookies.ts';

/** Time from `/authorize` to `/callback`. */
export const signInLifeMs = 600_000;

/** What is derived of the state and the browser's secret: none of it is stored as such. */
interface SignInSecrets {
  /** Id of the row of `flow_state`. */
  readonly id: string;
  readonly codeVerifier: string;
  readonly nonce: string;
}

/**
 * Binds a sign-in to the browser that started it. The secret is in a cookie; state and secret
 * together give the id of the stored flow, so a callback in another browser finds none.
 *
 * @see RFC 9700 §4.7.1 https://www.rfc-editor.org/rfc/rfc9700#section-4.7.1
 */
export function deriveSecrets(state: string, browserSecret: string): SignInSecrets {
  const derive = (purpose: string): Buffer =>
    createHmac('sha256', browserSecret).update(`${purpose} ${state}`).digest();
  return {
    id: toUuid(derive('flow')),
    codeVerifier: derive('pkce').toString('base64url'),
    nonce: derive('nonce').toString('base64url'),
  };
}

/** @see RFC 9562 §5.8 https://www.rfc-editor.org/rfc/rfc9562#section-5.8 */
function toUuid(bytes: Buffer): string {
  const id = Buffer.from(bytes.subarray(0, 16));
  id.writeUInt8((id.readUInt8(6) & 0x0f) | 0x80, 6);
  id.writeUInt8((id.readUInt8(8) & 0x3f) | 0x80, 8);
  return id.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

const secretForm = /^[\w-]{43}$/;

/**
 * The browser's secret, from its cookie or new. It is shared by the tabs of a browser, so that
 * concurrent sign-ins do not break each other.
 */
export function openBrowserSecret(
  request: FastifyRequest,
  reply: FastifyReply,
  options: { readonly settings: Settings; readonly isFormPost: boolean },
): string {
  const { settings, isFormPost } = options;
  const secret = readBrowserSecret(request, options) ?? randomBytes(32).toString('base64url');
  // A form that another site posts carries no `Lax` cookie.
  const sameSite = isFormPost ? 'None' : 'Lax';
  setCookie(reply, [cookieFor(isFormPost), secret], {
    settings,
    sameSite,
    maxAgeSeconds: signInLifeMs / 1000,
  });
  return secret;
}

/** The secret of the browser that sends a callback; undefined if it has started no sign-in. */
export function readBrowserSecret(
  request: FastifyRequest,
  options: { readonly settings: Settings; readonly isFormPost: boolean },
): string | undefined {
  const { settings, isFormPost } = options;
  return readCookie(request, { name: cookieFor(isFormPost), form: secretForm, settings });
}

function cookieFor(isFormPost: boolean): string {
  return isFormPost ? 'form-post' : 'sign-in';
}
