import { createHash } from 'node:crypto';
import { errors, OAuthError } from '../errors.ts';
import { isAllowedRedirect } from '../http/redirects.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import { toText } from '../identity-providers/provider.ts';
import { toIdentity } from '../providers/account.ts';
import type { ProvidersContext } from '../providers/connections.ts';
import { findOwner } from '../providers/sign-in.ts';
import { type IssuedSession, startSession } from '../sessions/issue.ts';
import { recordFailedSignInOf } from '../users/failed-sign-in.ts';
import type { User } from '../users/user.ts';
import { type Chain, type ChainName, chainNames, chains } from '../wallets/chain.ts';
import { parseMessage, type SignInMessage } from '../wallets/message.ts';

export type Web3Context = ProvidersContext;

/** The members of a web3 grant. */
interface Web3Request {
  readonly chain?: string | undefined;
  readonly message?: string | undefined;
  readonly signature?: unknown;
}

/** The `provider` of identities. */
const provider = 'web3';

/**
 * Signs a user in with a message that their wallet has signed. A message is accepted once.
 *
 * @throws AppError `web3_provider_disabled`, `web3_unsupported_chain`, `validation_failed`, and as
 * `findOrCreateOwner`; OAuthError `invalid_grant`
 */
export async function signInWithWeb3(
  context: Web3Context,
  { chain: chainName, message: text = '', signature = '' }: Web3Request,
  metadata: RequestMetadata,
): Promise<IssuedSession> {
  const name = findChain(context, chainName);
  const message = readMessage(chains[name], { text, signature });
  const maxValidityMs = context.settings[`web3MaxValidityMs:${name}`];
  try {
    checkOrigin(context, message);
    checkTimes(message, maxValidityMs, metadata);
    await spend(context, { text, maxValidityMs }, metadata);
  } catch (error) {
    const failure = { method: provider, reason: 'message_rejected' };
    if (error instanceof OAuthError)
      recordFailedSignInOf(context, () => findSigner(context, name, message), failure, metadata);
    throw error;
  }
  const identity = await readIdentity(context, name, message);
  const accepted = { identity, linkingUserId: undefined };
  const { user } = await findOwner(context, { emailOptional: true }, accepted, metadata);
  const { address, domain, uri, chainId: network } = message;
  const traits = { provider, chain: name, network, address, domain, uri };
  return startSession(context, { user, method: provider, traits }, metadata);
}

function findChain({ settings }: Web3Context, name: string | undefined): ChainName {
  const enabled = chainNames.filter((known) => settings[`web3Enabled:${known}`]);
  if (enabled.length === 0) throw errors.web3_provider_disabled();
  const chain = chainNames.find((known) => known === name);
  if (chain === undefined)
    throw errors.web3_unsupported_chain({ message: `chain must be one of ${chainNames.join(', ')}` });
  if (!enabled.includes(chain))
    throw errors.web3_provider_disabled({ message: `${chains[chain].title} Web3 provider is disabled` });
  return chain;
}

const minMessageBytes = 64;
const maxMessageBytes = 20 * 1024;

/** A message that has the signature of its address. */
function readMessage(
  chain: Chain,
  { text, signature: signatureText }: { readonly text: string; readonly signature: unknown },
): SignInMessage {
  const bytes = Buffer.byteLength(text);
  if (bytes < minMessageBytes || bytes > maxMessageBytes)
    throw malformed(`message must have ${minMessageBytes} to ${maxMessageBytes} bytes`);
  const signature = typeof signatureText === 'string' ? chain.parseSignature(signatureText) : undefined;
  if (signature === undefined) throw malformed(`signature must have ${chain.signatureForm}`);
  const parsed = parseMessage(text, chain);
  if (!parsed.ok) throw malformed(`message is not valid: ${parsed.problem}`);
  const { address } = parsed.message;
  if (!chain.isSigned({ text, address, signature }))
    throw rejected('The signature is not one of the address in the message');
  return parsed.message;
}

function malformed(message: string) {
  return errors.validation_failed({ message });
}

function rejected(description: string): OAuthError {
  return new OAuthError('invalid_grant', description);
}

/** The wallet shows the domain to the user: it must be of the site that the message is for. */
function checkOrigin({ settings }: Web3Context, { scheme, domain, uri }: SignInMessage): void {
  const [, uriScheme = '', authority] = /^([^:]+):\/\/([^/?#]*)/.exec(uri) ?? [];
  const isLocal = /^localhost(?::\d+)?$/.test(domain);
  if (uriScheme.toLowerCase() !== 'https' && !isLocal)
    throw rejected('The URI of the message must use https, except on localhost');
  if (authority !== domain || (scheme !== undefined && scheme !== uriScheme))
    throw rejected('The message has another domain than its URI');
  const isAllowed =
    isAllowedRedirect(uri, settings) && (isLocal || isAllowedRedirect(`https://${domain}/`, settings));
  if (!isAllowed) throw rejected('The message was signed for another site: its URI or domain is not allowed');
}

function checkTimes(
  { issuedAt, notBefore, expirationTime }: SignInMessage,
  maxValidityMs: number,
  { nowMs }: RequestMetadata,
): void {
  const ageMs = nowMs - issuedAt.getTime();
  if (ageMs > maxValidityMs) throw rejected('The message was issued too long ago');
  if (ageMs < -maxValidityMs) throw rejected('The message was issued too far in the future');
  if (notBefore !== undefined && notBefore.getTime() > nowMs) throw rejected('The message is not valid yet');
  if (expirationTime !== undefined && expirationTime.getTime() <= nowMs)
    throw rejected('The message has expired');
}

/** A message is accepted that long before and after its time. */
export function web3MessageLifeMs(maxValidityMs: number): number {
  return 2 * maxValidityMs;
}

/** By its text: a signature may have several encodings. */
async function spend(
  { limiter }: Web3Context,
  { text, maxValidityMs }: { readonly text: string; readonly maxValidityMs: number },
  { nowMs }: RequestMetadata,
): Promise<void> {
  const key = createHash('sha256').update(text).digest('base64url');
  const spacingMs = web3MessageLifeMs(maxValidityMs);
  const { allowed } = await limiter.takeSpaced('web3_message', { key, spacingMs }, nowMs);
  if (!allowed) throw rejected('The message was already used');
}

/** The user whose wallet has signed the message. */
async function findSigner(
  context: Web3Context,
  name: ChainName,
  message: SignInMessage,
): Promise<User | undefined> {
  const identity = await readIdentity(context, name, message);
  const { jwtAud: aud } = context.settings;
  const [owner] = await context.store.providers.findCandidates({ ...identity, aud });
  return owner?.user;
}

async function readIdentity({ store }: Web3Context, name: ChainName, message: SignInMessage) {
  const { address, domain, statement, chainId: network } = message;
  const forms = [address, ...chains[name].otherForms(address)];
  const ids = forms.map((form) => `${provider}:${name}:${form}`);
  const id = (await store.providers.findIdentityId(provider, ids)) ?? `${provider}:${name}:${address}`;
  const claims = { address, chain: name, network, domain, statement: toText(statement) };
  return toIdentity(provider, {
    id,
    emails: [],
    data: { sub: id, custom_claims: claims, phone_verified: false },
  });
}
