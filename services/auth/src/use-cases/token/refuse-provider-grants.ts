import { providerNames } from '../../domain/provider-names.ts';
import { errors, OAuthError } from '../../errors.ts';

/** What a client presents of an ID token, as far as it decides which provider it is of. */
export interface PresentedIdToken {
  readonly idToken?: string | undefined;
  readonly provider?: string | undefined;
  readonly clientId?: string | undefined;
  readonly issuer?: string | undefined;
}

/** Providers whose ID tokens clients may present, and their issuers. */
const issuers: ReadonlyMap<string, string> = new Map([
  ['apple', 'https://appleid.apple.com'],
  ['azure', 'https://login.microsoftonline.com/common/v2.0'],
  ['facebook', 'https://www.facebook.com'],
  ['google', 'https://accounts.google.com'],
  ['kakao', 'https://kauth.kakao.com'],
  ['keycloak', ''],
]);

/** Providers besides those that are listed at `/settings`. */
const furtherProviders: readonly string[] = ['fly', 'kakao', 'linkedin_oidc', 'slack_oidc', 'x', 'zoom'];

/**
 * Refuses an ID token, as a server on which no provider is enabled does: sign-in with providers is not served yet.
 *
 * @throws OAuthError for what is missing; AppError `provider_disabled`, `validation_failed` for an issuer of no known provider.
 */
export function refuseIdToken({
  idToken = '',
  provider = '',
  clientId = '',
  issuer = '',
}: PresentedIdToken): never {
  if (idToken === '') throw new OAuthError('invalid request', 'id_token required');
  if (provider === '' && (clientId === '' || issuer === ''))
    throw new OAuthError('invalid request', 'provider or client_id and issuer required');
  const known = [...issuers].find(([name, its]) => name === provider || (its !== '' && its === issuer));
  if (known === undefined)
    throw errors.validation_failed({ message: `Custom OIDC provider ${quote(provider)} not allowed` });
  const [name, its] = known;
  // Tenants of Azure and realms of Keycloak are issuers of their own.
  const shown = name === 'azure' || name === 'keycloak' ? issuer || its : its;
  throw errors.provider_disabled({ message: `Provider (issuer ${quote(shown)}) is not enabled` });
}

/** Refuses a redirect to a provider. @throws AppError `validation_failed`. */
export function refuseProvider(provider: string): never {
  const isKnown = [...providerNames, ...furtherProviders].includes(provider);
  const reason = isKnown
    ? 'provider is not enabled'
    : `Provider ${provider.slice(0, maxShownChars)} could not be found`;
  throw errors.validation_failed({ message: `Unsupported provider: ${reason}` });
}

/** Longer names are of no provider. */
const maxShownChars = 64;

function quote(text: string): string {
  return JSON.stringify(text.slice(0, maxShownChars));
}
