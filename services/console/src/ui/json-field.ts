import type { Html } from '@tollgate/kit/html';
import { errors } from '../errors.ts';
import { field } from './fields.ts';
import { readText } from './form.ts';

type JsonObject = Record<string, unknown>;

interface JsonFieldOptions {
  readonly name: string;
  readonly label: string;
  readonly value: Readonly<JsonObject>;
  readonly hint?: string;
}

/** A field of a form with a JSON object. */
export function jsonField({ value, ...options }: JsonFieldOptions): Html {
  return field({ ...options, value: JSON.stringify(value, null, 2), isLong: true });
}

/** Reads the field; an empty one is an empty object. @throws AppError `invalid_value` */
export function readJsonField(form: URLSearchParams, name: string, label: string): JsonObject {
  const text = readText(form, name) || '{}';
  const parsed = parse(text);
  if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed as JsonObject; // Parsed boundary.
  throw errors.invalid_value({
    message: `${label} is not a JSON object, such as {"team": "payments"}. Nothing was changed.`,
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
