import { normalizeEmail, normalizePhone } from '../../domain/contact.ts';
import { errors } from '../../errors.ts';

/** Where a user can be reached, as it is kept. */
export type Contact =
  | { readonly kind: 'email'; readonly email: string }
  | { readonly kind: 'phone'; readonly phone: string };

/**
 * Reads the one contact of a request: an email or a phone, not both.
 *
 * @throws AppError `validation_failed` with the message of `both` or `neither`, or what is wrong with the form.
 */
export function readContact(
  { email = '', phone = '' }: { readonly email?: string | undefined; readonly phone?: string | undefined },
  messages: { readonly both: string; readonly neither: string },
): Contact {
  if (email !== '' && phone !== '') throw errors.validation_failed({ message: messages.both });
  if (email !== '') return { kind: 'email', email: readEmail(email) };
  if (phone !== '') return { kind: 'phone', phone: readPhone(phone) };
  throw errors.validation_failed({ message: messages.neither });
}

/** An email address as it is kept. @throws AppError `validation_failed`. */
export function readEmail(text: string): string {
  const email = normalizeEmail(text);
  if (email === undefined)
    throw errors.validation_failed({ message: 'Unable to validate email address: invalid format' });
  return email;
}

/** A phone number as it is kept. @throws AppError `validation_failed`. */
export function readPhone(text: string): string {
  const phone = normalizePhone(text);
  if (phone === undefined)
    throw errors.validation_failed({ message: 'Invalid phone number format (E.164 required)' });
  return phone;
}
