import { isJsonType } from '../response/parse-body.ts';
import type { ArrayFormat } from './client-options.ts';
import { formOf } from './query-string.ts';
import type { RequestBody } from './request-options.ts';
import { isPlainObject, strictJson } from './strict-json.ts';
import type { WireParams } from './wire-params.ts';

/** A body that `fetch` takes. */
export type EncodedBody = Exclude<RequestBody, WireParams | URLSearchParams>;

const FORM = 'application/x-www-form-urlencoded';

/**
 * Turns a plain object into JSON where the headers say so and else into a form, and notes the content type; every other body stays.
 * JSON keeps null, which a form leaves out.
 */
export function encodeBody(body: RequestBody, headers: Headers, format: ArrayFormat): EncodedBody {
  if (body instanceof URLSearchParams) return asForm(body, headers);
  if (!isParams(body)) return body;
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? '';
  return isJsonType(type) ? strictJson(body, 'body') : asForm(formOf(body, format), headers);
}

/** Whether a body is a plain object of parameters. */
export function isParams(body: RequestBody): body is WireParams {
  if (typeof body !== 'object' || body === null) return false;
  return isPlainObject(body);
}

function asForm(form: URLSearchParams, headers: Headers): string {
  if (!headers.has('content-type')) headers.set('content-type', FORM);
  return form.toString();
}
