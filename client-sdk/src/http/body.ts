import { ParseError } from '../errors.ts';
import { type KeyCase, snakeCase } from '../key-case.ts';
import { isPlainObject } from '../objects.ts';
import { quote } from '../text.ts';

/**
 * Parses `application/x-www-form-urlencoded` text into an object without prototype: `+` is a space,
 * a repeated key becomes an array, values stay strings.
 */
function parseForm(text: string): Record<string, string | string[]> {
  return formFields(new URLSearchParams(text));
}

/** The fields of parsed form data; a repeated name becomes an array. */
export function formFields(pairs: Iterable<readonly [string, string]>): Record<string, string | string[]> {
  const fields: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of pairs) {
    const before = fields[name];
    fields[name] =
      before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value];
  }
  return fields;
}

/** Reads a body. `contentType` is in lower case without parameters. */
export type Parser = (body: string, response: ParsedFrom) => unknown;

/** The parts of a response that a parser receives. */
export type ParsedFrom = { readonly status: number; readonly headers: Headers; readonly contentType: string };

/** Parsers by MIME type. */
export type Parsers = { readonly [mimeType: string]: Parser };

/** How a body is parsed: by content type, as a given format, not at all, or by a function. */
export type Parse = 'automatic' | 'json' | 'form' | 'xml' | 'text' | false | Parser;

/**
 * Parses a body. Text without a parser, and an empty body, are returned unchanged.
 * @throws {ParseError} if the body does not match its type.
 */
export function parseBody(
  body: string,
  from: ParsedFrom,
  how: { readonly parse: Parse; readonly parsers: Parsers },
): unknown {
  if (how.parse === false || how.parse === 'text') return body;
  try {
    return parserFor(how.parse, from.contentType, how.parsers)(body, from);
  } catch (error) {
    // The parser's message may quote the body, which may hold a token.
    throw new ParseError(
      `the body is not valid ${from.contentType || 'content'}; read \`body\`, or set \`parse\``,
      {
        cause: error instanceof SyntaxError ? new SyntaxError('malformed body') : error,
      },
    );
  }
}

function parserFor(parse: Exclude<Parse, false | 'text'>, contentType: string, parsers: Parsers): Parser {
  if (typeof parse === 'function') return parse;
  if (parse === 'json') return parseJson;
  if (parse === 'form') return parseForm;
  if (parse === 'xml') return xmlParser(parsers, contentType);
  if (Object.hasOwn(parsers, contentType)) return parsers[contentType] ?? asText;
  if (isJsonType(contentType)) return parseJson;
  return contentType === 'application/x-www-form-urlencoded' ? parseForm : asText;
}

/**
 * Whether a MIME type is JSON: `application/json`, any `+json`, and `text/javascript`, which some
 * servers send.
 */
export function isJsonType(contentType: string): boolean {
  return (
    contentType === 'application/json' || contentType.endsWith('+json') || contentType === 'text/javascript'
  );
}

/**
 * XML has no built-in parser: uses the caller's parser for the type, or for any XML, else returns
 * the text.
 */
function xmlParser(parsers: Parsers, contentType: string): Parser {
  const isKnown = Object.hasOwn(parsers, contentType);
  const type = isKnown ? contentType : Object.keys(parsers).find((name) => name.endsWith('xml'));
  return (type === undefined ? undefined : parsers[type]) ?? asText;
}

function parseJson(body: string): unknown {
  return body === '' ? '' : JSON.parse(body);
}

function asText(body: string): string {
  return body;
}

/**
 * Reads the body of a response or request as UTF-8 text.
 * @throws {ParseError} if it is longer than `maxBytes`.
 */
export async function readBody(response: Response | Request, maxBytes: number): Promise<string> {
  if (response.body === null) return '';
  const declared = response.headers.get('content-length');
  if (declared !== null && Number(declared) > maxBytes) {
    giveUp(response.body);
    throw tooLong(maxBytes);
  }
  // The declared length is that of the text only if it is not compressed.
  if (declared !== null && !response.headers.has('content-encoding')) return await response.text();
  return await readBounded(response.body, maxBytes);
}

async function readBounded(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let text = '';
  let length = 0;
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    length += chunk.value.length;
    if (length > maxBytes) {
      giveUp(reader);
      throw tooLong(maxBytes);
    }
    text += decoder.decode(chunk.value, { stream: true });
  }
  return text + decoder.decode();
}

/**
 * The promise is not awaited: a clone settles only when the other half is read or cancelled, too.
 */
function giveUp(source: { cancel(): Promise<void> }): void {
  source.cancel().catch(() => undefined);
}

function tooLong(maxBytes: number): ParseError {
  return new ParseError(`the body is longer than ${maxBytes} bytes; raise \`maxBodyBytes\` if it should be`);
}

/** Objects nested deeper are not converted: recursion must not overflow the stack. */
const MAX_DEPTH = 100;

/**
 * Copies a parsed object into objects without prototype, so that `__proto__` and `constructor` are
 * ordinary keys, and converts keys in all nested objects.
 * @throws {ParseError} if two keys of an object become the same, with different values.
 */
export function convertKeys(parsed: unknown, keyCase: KeyCase): unknown {
  return convertValue(parsed, keyCase, 0);
}

function convertObject(
  from: Readonly<Record<string, unknown>>,
  keyCase: KeyCase,
  depth: number,
): Record<string, unknown> {
  const to: Record<string, unknown> = Object.create(null);
  for (const key of Object.keys(from)) {
    const converted = keyCase === 'snake' ? snakeCase(key) : key;
    const value = convertValue(from[key], keyCase, depth);
    if (converted in to && to[converted] !== value) throw collision(from, key, converted);
    to[converted] = value;
  }
  return to;
}

function collision(from: object, key: string, converted: string): ParseError {
  const other = Object.keys(from).find((name) => name !== key && snakeCase(name) === converted);
  return new ParseError(
    `the keys ${quote(other)} and ${quote(key)} of the response are both ${quote(converted)} in snake_case; set \`keyCase: 'preserve'\``,
  );
}

function convertValue(value: unknown, keyCase: KeyCase, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth >= MAX_DEPTH) return value;
  if (Array.isArray(value)) return value.map((item) => convertValue(item, keyCase, depth + 1));
  // The caller's parsers may return dates or class instances, which are values.
  return isPlainObject(value)
    ? convertObject(value as Readonly<Record<string, unknown>>, keyCase, depth + 1)
    : value;
}
