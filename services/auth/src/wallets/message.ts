import { parseInstant } from '@tollgate/kit/time';

/** How messages of a chain differ. */
export interface MessageFormat {
  /** The first line has it. */
  readonly title: string;
  readonly chainId: RegExp;
  /** Undefined for an address that is not valid. */
  parseAddress(text: string): string | undefined;
  /**
   * Whether the message must have a chain id, and its fields the order of the grammar. Wallets of
   * Solana, and auth-js for them, send the fields in another order.
   */
  readonly isStrict: boolean;
}

/** A message that a wallet has signed. */
export interface SignInMessage {
  readonly domain: string;
  readonly scheme: string | undefined;
  /** The canonical form of the address. */
  readonly address: string;
  /** Empty for none. */
  readonly statement: string;
  readonly uri: string;
  /** Empty for none. */
  readonly chainId: string;
  readonly issuedAt: Date;
  readonly expirationTime: Date | undefined;
  readonly notBefore: Date | undefined;
}

type ParsedMessage =
  | { readonly ok: true; readonly message: SignInMessage }
  | { readonly ok: false; readonly problem: string };

const uriForm = /^[a-z][a-z0-9+.-]*:[\w.~:/?#[\]@!$&'()*+,;=%-]+$/i;
const controls = /\p{Cc}/u;

type FieldName = (typeof fieldNames)[number];

/** They have the order of the grammar. */
const fieldNames = [
  'URI',
  'Version',
  'Chain ID',
  'Nonce',
  'Issued At',
  'Expiration Time',
  'Not Before',
  'Request ID',
] as const;

const isInstant = (text: string): boolean => parseInstant(text) !== undefined;

/** The form of a field, unless it depends on the chain. */
const isValid: Readonly<Partial<Record<FieldName, (value: string) => boolean>>> = {
  URI: (value) => uriForm.test(value),
  Version: (value) => value === '1',
  Nonce: (value) => /^[a-z0-9]{8,}$/i.test(value),
  'Issued At': isInstant,
  'Expiration Time': isInstant,
  'Not Before': isInstant,
  'Request ID': (value) => /^[\w.~:@!$&'()*+,;=%-]*$/.test(value),
};

/**
 * Parses a message by the grammar of Sign-In with Ethereum or Sign-In with Solana, with the
 * differences that auth-js needs: no nonce is required, and a statement may have any characters.
 *
 * @see ERC-4361 https://eips.ethereum.org/EIPS/eip-4361
 * @see https://github.com/phantom/sign-in-with-solana
 */
export function parseMessage(text: string, format: MessageFormat): ParsedMessage {
  const [header = '', address = '', blank, ...body] = text.split('\n');
  if (controls.test(text.replaceAll('\n', ''))) return invalid('it has control characters');
  const [origin = '', rest] = header.split(` wants you to sign in with your ${format.title} account:`);
  const [, scheme, domain] = /^(?:([a-z][a-z0-9+.-]*):\/\/)?([^\s/?#@]+)$/i.exec(origin) ?? [];
  if (domain === undefined || rest !== '')
    return invalid(`its first line does not ask to sign in with a ${format.title} account`);
  const parsedAddress = format.parseAddress(address);
  if (parsedAddress === undefined) return invalid('its address is not valid');
  const split = splitStatement(body, format);
  if (blank !== '' || split === undefined) return invalid('an empty line is missing');
  const fields = readFields(split.fields, format);
  if (typeof fields === 'string') return invalid(fields);
  return toMessage(fields, { scheme, domain, address: parsedAddress, statement: split.statement }, format);
}

function invalid(problem: string) {
  return { ok: false, problem } as const;
}

/** A statement is between empty lines. Without one Ethereum has both of them, and Solana one. */
function splitStatement(
  body: readonly string[],
  { isStrict }: MessageFormat,
): { readonly statement: string; readonly fields: readonly string[] } | undefined {
  const [statement = '', blank] = body;
  if (statement !== '' && blank === '') return { statement, fields: body.slice(2) };
  if (statement === '') return { statement, fields: body.slice(1) };
  return isStrict ? undefined : { statement: '', fields: body };
}

/** The fields by name, or what is wrong. Each is present at most once. */
function readFields(
  lines: readonly string[],
  { isStrict }: MessageFormat,
): ReadonlyMap<FieldName, string> | string {
  // auth-js omits the colon for Solana.
  const resourcesAt = lines.findIndex((line) => line === 'Resources:' || (!isStrict && line === 'Resources'));
  const end = resourcesAt < 0 ? lines.length : resourcesAt;
  for (const line of lines.slice(end + 1))
    if (!line.startsWith('- ') || !uriForm.test(line.slice(2))) return 'a resource is not a URI';
  const fields = new Map<FieldName, string>();
  let last = -1;
  for (const line of lines.slice(0, end)) {
    const at = fieldNames.findIndex((known) => line.startsWith(`${known}: `));
    const name = fieldNames[at];
    if (name === undefined) return 'it has a line that is not a field';
    if (fields.has(name) || (isStrict && at < last)) return `${name} is repeated or not in order`;
    fields.set(name, line.slice(name.length + 2));
    last = at;
  }
  return fields;
}

function toMessage(
  fields: ReadonlyMap<FieldName, string>,
  header: Pick<SignInMessage, 'scheme' | 'domain' | 'address' | 'statement'>,
  { chainId: chainIdForm, isStrict }: MessageFormat,
): ParsedMessage {
  for (const [name, value] of fields)
    if (isValid[name]?.(value) === false) return invalid(`${name} is not valid`);
  const chainId = fields.get('Chain ID');
  if (chainId === undefined ? isStrict : !chainIdForm.test(chainId)) return invalid('Chain ID is not valid');
  const uri = fields.get('URI');
  const issuedAt = parseInstant(fields.get('Issued At') ?? '');
  if (uri === undefined || issuedAt === undefined || !fields.has('Version'))
    return invalid('URI, Version or Issued At is missing');
  const expirationTime = parseInstant(fields.get('Expiration Time') ?? '');
  const notBefore = parseInstant(fields.get('Not Before') ?? '');
  const message = { ...header, uri, chainId: chainId ?? '', issuedAt, expirationTime, notBefore };
  return { ok: true, message };
}
