import { isUuid } from '../../domain/uuid.ts';
import { errors } from '../../errors.ts';

/** A UUID of the path, in lower case. @throws AppError `validation_failed` with 404: whatever has no such form names nothing. */
export function uuidParameter<K extends string>(parameters: Readonly<Record<K, string>>, name: K): string {
  const value = parameters[name];
  if (!isUuid(value)) throw errors.validation_failed({ message: `${name} must be an UUID`, httpStatus: 404 });
  return value.toLowerCase();
}
