import { createHmac, randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { readCookie, setCookie } from '../http/cookies.ts';
import { isEqualSecret, type Randomness } from '../keys/secrets.ts';

/** Time from `/authorize` to `/callback`. */
export const signInLifeMs = 600_000;

/** Values derived from the state and the browser's secret: neither is stored as such. */
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

/** A sign-in that starts. */
interface NewSignIn extends SignInSecrets {
  readonly state: string;
}

type FlowSettings = Pick<Settings, 'dbSharedWithGotrue'>;

/**
 * GoTrue finds the flow of a callback by its state, which is the id of the row: so it is in a
 * shared database, where half of the state authenticates the browser.
 */
export function newSignIn(random: Randomness, browserSecret: string, settings: FlowSettings): NewSignIn {
  if (!settings.dbSharedWithGotrue) {
    const state = random.uuid();
    return { state, ...deriveSecrets(state, browserSecret) };
  }
  const state = bindState(random.bytes(stateBytes), browserSecret);
  return { state, ...deriveSecrets(state, browserSecret), id: state };
}

/** Data that a callback needs to find and complete its sign-in. */
export interface CallbackSecrets {
  readonly id: string;
  /** Undefined for a sign-in that GoTrue has started. */
  readonly nonce: string | undefined;
  /** Undefined if the verifier is stored, or there is none. */
  readonly codeVerifier: string | undefined;
}

/** Undefined if another browser has started the sign-in. */
export function openSignIn(
  state: string,
  browserSecret: string | undefined,
  { dbSharedWithGotrue }: FlowSettings,
): CallbackSecrets | undefined {
  // GoTrue does not bind its states to a browser.
  if (dbSharedWithGotrue && gotrueState.test(state))
    return { id: state, nonce: undefined, codeVerifier: undefined };
  if (browserSecret === undefined) return undefined;
  const secrets = deriveSecrets(state, browserSecret);
  if (!dbSharedWithGotrue) return secrets;
  const random = Buffer.from(state.replaceAll('-', '').slice(0, stateBytes * 2), 'hex');
  return random.length === stateBytes && isEqualSecret(state, bindState(random, browserSecret))
    ? { ...secrets, id: state, codeVerifier: undefined }
    : undefined;
}

/** A UUID of version 4; those of this server have version 8. */
const gotrueState = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
/** Half of a UUID. The other half can only be guessed online. */
const stateBytes = 8;

function bindState(random: Buffer, browserSecret: string): string {
  const bytes = Buffer.from(random);
  // The version is part of what is authenticated.
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  const mac = createHmac('sha256', browserSecret).update('state ').update(bytes).digest();
  return toUuid(Buffer.concat([bytes, mac.subarray(0, 16 - stateBytes)]));
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
