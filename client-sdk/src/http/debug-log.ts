import type { Logger } from '../client-options.ts';
import { printable } from '../text.ts';
import { type RedactOptions, Redactor } from './redact.ts';
import type { ReadyRequest } from './request.ts';
import type { ApiResponse } from './response.ts';

/** Characters of a body that are logged. */
const MAX_LOGGED_LENGTH = 65_536;

/** Logs verb, URL, headers and body of a request, secrets masked. */
export function logRequest(
  logger: Logger,
  redact: RedactOptions,
  { method, url, headers, body }: ReadyRequest,
): void {
  const redactor = new Redactor(redact);
  logger.info(`request: ${method} ${redactor.url(url)}`);
  logger.info(`request: ${headerLines(headers, redactor)}`);
  if (body === undefined || body === null || body === '') return;
  const isText = typeof body === 'string';
  logger.info(
    `request: ${isText ? printable(redactor.text(body), MAX_LOGGED_LENGTH) : `(${body.constructor.name})`}`,
  );
}

/** Logs status, headers and body of a response, secrets masked. */
export function logResponse(
  logger: Logger,
  redact: RedactOptions,
  { status, headers, body }: ApiResponse,
): void {
  const redactor = new Redactor(redact);
  logger.info(`response: Status ${status}`);
  logger.info(`response: ${headerLines(headers, redactor)}`);
  if (body !== '') logger.info(`response: ${printable(redactor.responseText(body), MAX_LOGGED_LENGTH)}`);
}

function headerLines(headers: Headers, redactor: Redactor): string {
  return [...headers]
    .map(([name, value]) => `${name}: ${JSON.stringify(redactor.header(name, value))}`)
    .join('\n');
}
