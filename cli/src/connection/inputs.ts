import { CommandFailure } from '../failure.ts';

/** @param name where the text is from @throws CommandFailure */
export function requireUrl(text: string, name?: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url !== undefined && url.username === '' && url.password === '';
  if (isPlain && /^https?:$/.test(url.protocol)) return text;
  // A password is not shown.
  const shown = url?.password ? '' : `: ${text}`;
  const subject = name === undefined ? 'not' : `${name} is not`;
  throw new CommandFailure(
    `${subject} an http or https URL without credentials${shown}. Expected http://host:port or https://host`,
  );
}

/**
 * A key or token without the white space around it. A header cannot have other characters, and an
 * error of the HTTP client would show the secret.
 *
 * @throws CommandFailure
 */
export function requireSecret(text: string, name: string): string {
  const secret = text.trim();
  if (!/^[\x21-\x7e]+$/.test(secret))
    throw new CommandFailure(`${name} has no secret: one line of ASCII characters is expected`);
  return secret;
}

/** A URL to which a path is added. */
export function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}
