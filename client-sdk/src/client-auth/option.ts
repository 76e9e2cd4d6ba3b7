// Apart from client-auth.ts: a bundler keeps what a module imports dynamically, even where it drops
// the function that does. Bundles with a grant of grants.ts would contain all that signs.

import type { ClientOptions } from '../client-options.ts';
import { ConfigurationError } from '../errors.ts';
import { assertKnownOptions, type OptionNames } from '../option-names.ts';
import { assertSupported } from '../server-support.ts';
import {
  type BasicEncoding,
  type ClientAssertionAuth,
  type ClientAuth,
  type ClientAuthFunction,
  type ClientAuthName,
  type ClientSecretJwtAuth,
  clientSecretBasic,
  clientSecretPost,
  dependsOnEncoding,
  type PrivateKeyJwtAuth,
  publicClient,
} from './methods.ts';

const signedMethods = ['private_key_jwt', 'client_secret_jwt', 'client_assertion'];
const namedMethods = ['client_secret_basic', 'client_secret_post', 'tls_client_auth', 'none'];

/** Methods for a client secret, most common first. */
const secretMethods = ['client_secret_basic', 'client_secret_post', 'client_secret_jwt'] as const;

/** Metadata often omit `none`; the others have no registered name. */
const unlistedMethods = ['none', 'custom', 'client_assertion'];

const assertionNames = { method: 1, audience: 1, lifetime: 1, algorithm: 1 } as const;

const methodOptionNames: {
  readonly private_key_jwt: OptionNames<PrivateKeyJwtAuth>;
  readonly client_secret_jwt: OptionNames<ClientSecretJwtAuth>;
  readonly client_assertion: OptionNames<ClientAssertionAuth>;
} = {
  private_key_jwt: { ...assertionNames, key: 1, keyId: 1, modify: 1 },
  client_secret_jwt: assertionNames,
  client_assertion: { method: 1, assertion: 1, type: 1 },
};

/** The name of a method, as in discovery documents; `custom` for a function. */
export function clientAuthName(auth: ClientAuth): string {
  if (typeof auth === 'function') return 'custom';
  return typeof auth === 'string' ? auth : auth.method;
}

/**
 * The method that the caller has chosen, or one for the secret that the server supports. A public
 * client needs no method, and functions and assertions of third parties have no registered name.
 *
 * @throws {ConfigurationError} if the server does not list it
 * @see RFC 8414 §2 https://www.rfc-editor.org/rfc/rfc8414#section-2
 */
export function selectClientAuth(options: ClientOptions): ClientAuth {
  const { clientSecret, tokenEndpointAuthMethodsSupported: listed = [] } = options;
  const method = secretMethods.find((name) => listed.includes(name)) ?? 'client_secret_basic';
  const forSecret = method === 'client_secret_jwt' ? { method } : method;
  const auth = options.clientAuth ?? (clientSecret === undefined ? 'none' : forSecret);
  const name = clientAuthName(auth);
  const isPublic = clientSecret === undefined && name.startsWith('client_secret_');
  const isSelfSigned = name === 'tls_client_auth' && listed.includes(`self_signed_${name}`);
  if (!isPublic && !isSelfSigned && !unlistedMethods.includes(name)) {
    const remedy = 'set `clientAuth` to another method';
    assertSupported(options, 'tokenEndpointAuthMethodsSupported', { name, remedy });
  }
  return auth;
}

/**
 * Makes the function that authenticates a client by the method it is configured with.
 * @throws {ConfigurationError} if the method does not exist or lacks its settings.
 */
export function resolveClientAuth(
  auth: ClientAuth,
  clientSecret: string | undefined,
  encoding: BasicEncoding,
): ClientAuthFunction {
  if (typeof auth === 'function') return auth;
  const name = clientAuthName(auth);
  if (!namedMethods.includes(name) && !signedMethods.includes(name)) {
    const known = [...namedMethods, ...signedMethods].join(', ');
    throw new ConfigurationError(
      `\`clientAuth\` must be a function or one of ${known}; got ${JSON.stringify(name)}`,
    );
  }
  if (typeof auth !== 'string') {
    assertKnownOptions('`clientAuth`', auth, methodOptionNames[auth.method]);
    return loadedOnUse(auth, clientSecret);
  }
  if (signedMethods.includes(name))
    throw new ConfigurationError(`\`clientAuth\`: ${auth} needs its settings: { method: '${auth}', … }`);
  return identified(withSecret(auth, clientSecret, encoding));
}

/** A client without a secret is public: servers refuse empty Basic credentials. */
function withSecret(
  name: ClientAuthName,
  secret: string | undefined,
  encoding: BasicEncoding,
): ClientAuthFunction {
  if (secret !== undefined && name === 'client_secret_basic') return clientSecretBasic(secret, encoding);
  if (secret !== undefined && name === 'client_secret_post') return clientSecretPost(secret);
  return publicClient;
}

/**
 * Requires a client id, except where the grant carries an assertion.
 * @see RFC 7521 §4.1 https://www.rfc-editor.org/rfc/rfc7521#section-4.1
 */
function identified(authenticate: ClientAuthFunction): ClientAuthFunction {
  return (request, client) => {
    const { headers, body } = request;
    const isIdentified =
      client.clientId !== undefined ||
      ['client_id', 'client_assertion', 'assertion'].some((name) => body.has(name)) ||
      headers.has('authorization');
    if (isIdentified) return authenticate(request, client);
    throw new ConfigurationError(
      'the client has no `clientId`: set it, or authenticate with a function as `clientAuth`',
    );
  };
}

/**
 * Most clients sign nothing, so that bundlers may split signing off. Loaded before anything is
 * sent.
 */
function loadedOnUse(
  auth: Exclude<ClientAuth, string | ClientAuthFunction>,
  clientSecret: string | undefined,
): ClientAuthFunction {
  let loaded: ClientAuthFunction | undefined;
  return async (request, client) => {
    const methods = await import('./assertion.ts');
    loaded ??=
      auth.method === 'private_key_jwt'
        ? methods.privateKeyJwt(auth)
        : auth.method === 'client_secret_jwt'
          ? methods.clientSecretJwt(clientSecret, auth)
          : methods.clientAssertion(auth);
    await loaded(request, client);
  };
}

/**
 * A hint for `invalid_client`, where the secret has characters that servers decode differently and
 * never say so.
 */
export function encodingHint(id: string, secret: string, encoding: BasicEncoding): string | undefined {
  if (!dependsOnEncoding(id, secret)) return undefined;
  const other = encoding === 'raw' ? 'rfc6749' : 'raw';
  return `client id or secret have characters that servers decode differently: try \`basicEncoding: '${other}'\``;
}
