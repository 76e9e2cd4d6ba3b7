import { ParseError } from '../errors/parse-error.ts';
import type { StandardSchema } from './standard-schema.ts';

/**
 * Checks a value by a schema.
 * @throws {ParseError} when it does not fit; the message names the places.
 */
export async function parseAs<Output>(value: unknown, schema: StandardSchema<Output>): Promise<Output> {
  const result = await schema['~standard'].validate(value);
  if (result.issues === undefined) return result.value;
  const places = result.issues.map(({ path = [], message }) => {
    const keys = path.map((part) => String(typeof part === 'object' ? part.key : part));
    return `${keys.join('.')}: ${message}`;
  });
  throw new ParseError(`the response does not fit the schema: ${places.join('; ')}`, {
    cause: result.issues,
  });
}
