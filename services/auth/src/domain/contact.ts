/** HTML's form of an email address, without its quadratic corner: each label is bounded. */
const emailForm =
  /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/;
const maxEmailChars = 255;
/** E.164 without the plus. */
const phoneForm = /^[1-9][0-9]{1,14}$/;

/** An email address as it is kept, in lower case; undefined for what is none. */
export function normalizeEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase();
  return email.length <= maxEmailChars && emailForm.test(email) ? email : undefined;
}

/** A phone number as it is kept: digits, no `+`, no spaces; undefined for what is none. */
export function normalizePhone(text: string): string | undefined {
  const phone = text.replaceAll(' ', '').replace(/^\+/, '');
  return phoneForm.test(phone) ? phone : undefined;
}
