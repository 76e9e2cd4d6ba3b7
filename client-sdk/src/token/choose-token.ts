import type { WarningEvent } from '../client/warning.ts';

/** Fields that may be the access token, the first one present being it. */
export const tokenNames = ['access_token', 'id_token', 'token', 'accessToken', 'idToken'] as const;

/**
 * The name of the access token among the fields of a token response: the one named, or the first of access_token, id_token, token,
 * accessToken, idToken that is there; undefined where there is none.
 */
export function chooseToken(
  fields: Readonly<Record<string, unknown>>,
  tokenName: string | undefined,
  onWarning: ((event: WarningEvent) => void) | undefined,
): string | undefined {
  if (onWarning !== undefined) warn(fields, tokenName, onWarning);
  return tokenName ?? tokenNames.find((name) => Object.hasOwn(fields, name));
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
    const names = Object.keys(fields).join(', ');
    onWarning({
      code: 'token_name_missing',
      message: `no \`${tokenName}\` among ${names}; are its keys converted? See \`keyCase\``,
    });
  }
}
