import type { Html } from '@tollgate/kit/html';
import { field } from './forms.ts';
import type { Problem } from './problems.ts';
import type { Visit } from './visit.ts';

/** The kinds of contacts that users of a form may enter. */
export interface ContactKinds {
  readonly email: boolean;
  readonly phone: boolean;
}

interface IdentifierOptions extends ContactKinds {
  readonly value: string | undefined;
  readonly problem: Problem | undefined;
}

/** The field for the email address or the phone number of an account. */
export function identifierField({ texts }: Visit, { email, phone, value, problem }: IdentifierOptions): Html {
  const label = email && phone ? texts.emailOrPhone : phone ? texts.phoneNumber : texts.emailAddress;
  const type = phone ? 'text' : 'email';
  return field({ name: 'identifier', label, type, autocomplete: 'username', value }, problem);
}

export function readIdentifier(
  text: string,
  { phone }: ContactKinds,
): { readonly email: string } | { readonly phone: string } {
  return text.includes('@') || !phone ? { email: text } : { phone: text };
}
