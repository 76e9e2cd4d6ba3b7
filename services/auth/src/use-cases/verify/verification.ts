import type { FlowMethod } from '../../ports/flow-store.ts';
import type { OneTimeTokenType } from '../../ports/one-time-token-store.ts';

/** What a type of verification takes, and what it ends with. */
export interface Verification {
  /** Where the code went. */
  readonly contact: 'email' | 'phone';
  readonly tokens: readonly OneTimeTokenType[];
  /** What a PKCE flow that it completes began with, by the token that was found. */
  readonly flowMethod: (token: OneTimeTokenType) => FlowMethod;
}

const signUp = (): FlowMethod => 'email/signup';

/** Values of `type` at `/verify`. A sign-in by text message and the first confirmation of a phone are the same. */
export const verifications = {
  signup: { contact: 'email', tokens: ['confirmation_token'], flowMethod: signUp },
  invite: { contact: 'email', tokens: ['confirmation_token'], flowMethod: () => 'invite' },
  recovery: { contact: 'email', tokens: ['recovery_token'], flowMethod: () => 'recovery' },
  magiclink: { contact: 'email', tokens: ['recovery_token'], flowMethod: () => 'magiclink' },
  email: {
    contact: 'email',
    tokens: ['confirmation_token', 'recovery_token'],
    flowMethod: (token) => (token === 'confirmation_token' ? 'email/signup' : 'magiclink'),
  },
  email_change: {
    contact: 'email',
    tokens: ['email_change_token_current', 'email_change_token_new'],
    flowMethod: () => 'email_change',
  },
  sms: { contact: 'phone', tokens: ['confirmation_token', 'recovery_token'], flowMethod: signUp },
  phone_change: { contact: 'phone', tokens: ['phone_change_token'], flowMethod: signUp },
} as const satisfies Record<string, Verification>;

/** One of the keys of {@link verifications}. */
export type VerificationType = keyof typeof verifications;

/** Is it one of them? */
export function isVerificationType(text: string): text is VerificationType {
  return Object.hasOwn(verifications, text);
}
