import { errors } from '../../errors.ts';

const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Has the text the form of a UUID? */
export function isUuid(text: string): boolean {
  return uuidForm.test(text);
}

/** A UUID of the path, in lower case. @throws AppError `validation_failed` with 404: whatever has no such form names nothing. */
export function uuidParameter<K extends string>(parameters: Readonly<Record<K, string>>, name: K): string {
  const value = parameters[name];
  if (!isUuid(value)) throw errors.validation_failed({ message: `${name} must be an UUID`, httpStatus: 404 });
  return value.toLowerCase();
}
