import type { WarningEvent } from '../client/warning.ts';

/** Fields that may be the access token, the first one present being it. */
export const tokenNames = ['access_token', 'id_token', 'token', 'accessToken', 'idToken'] as const;

/** The token of a response's fields, and what is left of them. */
export type ChosenToken = { readonly token: string; readonly rest: Record<string, unknown> };

/**
 * Takes the access token out of the fields of a token response: the one named, or the first of access_token, id_token, token,
 * accessToken, idToken that is there. The token is `''` where there is none. The fields given are not changed.
 */
export function chooseToken(
  fields: Readonly<Record<string, unknown>>,
  tokenName: string | undefined,
  onWarning: ((event: WarningEvent) => void) | undefined,
): ChosenToken {
  const present = tokenNames.filter((name) => Object.hasOwn(fields, name));
  const name = tokenName ?? present[0];
  if (tokenName === undefined && present.length > 1) {
    onWarning?.({
      code: 'extra_tokens',
      message: `more than one token: ${present.join(', ')}; using ${present[0]}`,
    });
  }
  if (tokenName !== undefined && !Object.hasOwn(fields, tokenName)) {
    onWarning?.({
      code: 'token_name_missing',
      message: `no \`${tokenName}\` among ${Object.keys(fields).join(', ')}; are its keys converted? See \`keyCase\``,
    });
  }
  const rest: Record<string, unknown> = Object.create(null);
  for (const key of Object.keys(fields)) if (key !== name) rest[key] = fields[key];
  return { token: name === undefined ? '' : asText(fields[name]), rest };
}

function asText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
