import type { Redactor } from '../redact/redactor.ts';
import type { ReadyRequest } from './send-following.ts';

/** Shorter values are not masked: they would be found inside ordinary words. */
const MIN_LENGTH = 4;

/** The secrets that a request carried: its credentials, and the secret parameters of query and form. */
export function secretsOf({ url, headers, body }: ReadyRequest, { isSecretName }: Redactor): string[] {
  const secrets: string[] = [];
  const authorization = headers.get('authorization');
  if (authorization !== null) secrets.push(authorization.slice(authorization.indexOf(' ') + 1));
  const queryAt = url.indexOf('?');
  if (queryAt >= 0) collect(new URLSearchParams(url.slice(queryAt)));
  if (typeof body === 'string' && !body.startsWith('{')) collect(new URLSearchParams(body));
  return secrets;

  function collect(pairs: URLSearchParams): void {
    for (const [name, value] of pairs) if (isSecretName(name)) secrets.push(value);
  }
}

/** Makes the function that masks these values wherever a server repeats them. */
export function maskValues(values: readonly string[], label: string): (text: string) => string {
  const long = values.filter((value) => value.length >= MIN_LENGTH).sort((a, b) => b.length - a.length);
  return (text) => long.reduce((masked, value) => masked.replaceAll(value, () => label), text);
}
