import type { FormAnswer } from './post-form.ts';

/** What answers of Twilio say, of whatever product: a member that it did not send is looked at by nobody. */
export interface TwilioAnswer {
  readonly sid?: unknown;
  readonly status?: unknown;
  readonly valid?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
}

/** Reads the body of an answer. */
export function twilioAnswerOf({ body }: FormAnswer): TwilioAnswer {
  // Parsed boundary: all members are unknown.
  return (typeof body === 'object' && body !== null ? body : {}) as TwilioAnswer;
}

/** Says what Twilio refused, and why. */
export function twilioRefusal(answer: FormAnswer): Error {
  const { message, code } = twilioAnswerOf(answer);
  return new Error(`Twilio answered ${answer.status}: ${String(message ?? '')} (${String(code ?? '')})`);
}

/** The value of `Authorization` for an account. */
export function twilioAuthorization({ account, token }: { account: string; token: string }): string {
  return `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
}
