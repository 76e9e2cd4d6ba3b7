/**
 * OAuth clients that the auth server has for programs of Tollgate. The ids are fixed UUIDs
 * (version 5, of the names in the DNS namespace), so that no program needs a setting for its own.
 */
export const consoleClientId = 'f1cc6672-70c8-5c4d-abd5-746566bc5506';
export const cliClientId = '01946718-4f99-591c-a4d6-1560013cafdd';

/** The URIs that the auth server returns to, at the external URL of the console. */
export function consoleUris(url: string): {
  readonly redirectUri: string;
  readonly postLogoutRedirectUri: string;
} {
  const base = url.replace(/\/+$/, '');
  return { redirectUri: `${base}/callback`, postLogoutRedirectUri: `${base}/` };
}

export function isFirstPartyClient(clientId: string): boolean {
  return clientId === consoleClientId || clientId === cliClientId;
}
