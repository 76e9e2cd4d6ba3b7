import { ParseError } from '../errors/parse-error.ts';
import { parseForm } from './parse-form.ts';

/** Reads a body. `contentType` is in lower case without parameters. */
export type Parser = (body: string, response: ParsedFrom) => unknown;

/** What a parser may know of the response. */
export type ParsedFrom = { readonly status: number; readonly headers: Headers; readonly contentType: string };

/** Parsers by MIME type. */
export type Parsers = { readonly [mimeType: string]: Parser };

/** How a body is read: by content type, as the format named, not at all, or by a function of one's own. */
export type Parse = 'automatic' | 'json' | 'form' | 'xml' | 'text' | false | Parser;

/**
 * Parses a body. Text that no parser is for comes back as it is; so does an empty body.
 * @throws {ParseError} when the body is not what its type says.
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
    // The parser's message may quote the body, which may hold a token: it stays in `cause`'s place, named but not quoted.
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

/** Whether a MIME type holds JSON: `application/json`, any `+json`, and JavaScript as some servers call it. */
export function isJsonType(contentType: string): boolean {
  return (
    contentType === 'application/json' || contentType.endsWith('+json') || contentType === 'text/javascript'
  );
}

/** The core parses no XML: the caller's parser for the type, or for any XML, else the text. */
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
