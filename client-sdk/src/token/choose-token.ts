import type { WarningEvent } from '../client/warning.ts';
import { snakeCase } from '../keys/snake-case.ts';
import { printable } from '../printable.ts';

/** Fields that may be the access token, the first one present being it. */
const tokenNames = ['access_token', 'id_token', 'token', 'accessToken', 'idToken'] as const;

/**
 * The name of the access token among the fields of a token response: the one named (also by its snake_case), or the first of access_token, id_token, token,
 * accessToken, idToken that is there; undefined where there is none.
 */
export function chooseToken(
  fields: Readonly<Record<string, unknown>>,
  tokenName: string | undefined,
  onWarning: ((event: WarningEvent) => void) | undefined,
): string | undefined {
  const named = tokenName === undefined ? undefined : fieldNamed(fields, tokenName);
  if (onWarning !== undefined) warn(fields, named, onWarning);
  return named ?? tokenNames.find((name) => Object.hasOwn(fields, name));
}

/** The field of that name, or of its snake_case: keys of responses are converted before they are looked at. */
function fieldNamed(fields: Readonly<Record<string, unknown>>, tokenName: string): string {
  if (Object.hasOwn(fields, tokenName)) return tokenName;
  const converted = snakeCase(tokenName);
  return Object.hasOwn(fields, converted) ? converted : tokenName;
}

/** The text of a token; empty where it is no token. */
export function tokenText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function warn(
  fields: Readonly<Record<string, unknown>>,
  tokenName: string | undefined,
  onWarning: (event: WarningEvent) => void,
): void {
  const present = tokenNames.filter((name) => Object.hasOwn(fields, name));
  if (tokenName === undefined && present.length > 1) {
    onWarning({
      code: 'extra_tokens',
      message: `more than one token: ${present.join(', ')}; using ${present[0]}`,
    });
  }
  if (tokenName !== undefined && !Object.hasOwn(fields, tokenName)) {
    const names = printable(Object.keys(fields).join(', '), 512);
    onWarning({
      code: 'token_name_missing',
      message: `no \`${tokenName}\` among ${names}; are its keys converted? See \`keyCase\``,
    });
  }
}
