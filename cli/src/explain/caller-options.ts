import { Value } from 'typebox/value';
import { CommandFailure } from '../failure.ts';
import { type CallerSpec, callerSchema } from '../policy-tests/format.ts';

/** Options that say who sends the explained request. */
export interface CallerOptions {
  readonly as?: string;
  readonly attributes?: readonly string[];
}

const kinds: Readonly<Record<string, keyof CallerSpec>> = { user: 'user', key: 'apiKey', client: 'client' };

/** Attributes with several values, separated by commas. */
const lists: ReadonlySet<string> = new Set(['scopes', 'audiences']);

/**
 * Reads `--as user:ann --attributes plan=pro scopes=a,b`. Undefined without a caller.
 *
 * @throws CommandFailure that names the option
 */
export function readCaller({ as, attributes = [] }: CallerOptions): CallerSpec | undefined {
  if (as === undefined && attributes.length > 0)
    throw new CommandFailure('--attributes are those of a caller: add --as user:<id>');
  if (as === undefined) return undefined;
  const { kind = '', id = '' } = /^(?<kind>[a-z]+):(?<id>.+)$/.exec(as)?.groups ?? {};
  const name = kinds[kind];
  if (name === undefined) throw new CommandFailure('--as is user:<id>, key:<id> or client:<id>');
  const caller: unknown = { [name]: id, ...Object.fromEntries(attributes.map(readAttribute)) };
  if (Value.Check(callerSchema, caller)) return caller;
  const known = Object.keys(callerSchema.properties).filter((property) => !nested.has(property));
  throw new CommandFailure(
    `--attributes are name=value, with ${known.join(', ')}: not ${attributes.join(' ')}`,
  );
}

/** Attributes that are no text. */
const nested: ReadonlySet<string> = new Set(['user', 'apiKey', 'client', 'claims', 'limit']);

function readAttribute(text: string): readonly [string, unknown] {
  const at = text.indexOf('=');
  const [name, value] = [text.slice(0, at), text.slice(at + 1)];
  if (lists.has(name)) return [name, value.split(',')];
  return [name, name === 'anonymous' ? value === 'true' : value];
}

/** Attributes that a token for the explained request may have. The server knows the others. */
const tokenFields: Readonly<Record<string, string>> = {
  assurance: 'aal',
  scopes: 'scope',
  audiences: 'audience',
  organization: 'org',
};

/**
 * The caller as the admin API has it.
 *
 * @throws CommandFailure for attributes that the server knows itself
 */
export function toApiCaller(options: CallerOptions): Readonly<Record<string, string>> {
  const caller = readCaller(options);
  if (caller === undefined || options.as === undefined) return {};
  const { user: _user, apiKey: _key, client: _client, ...attributes } = caller;
  const fields = Object.entries(attributes).map(([name, value]) => {
    const field = tokenFields[name];
    if (field === undefined)
      throw new CommandFailure(`the server knows ${name} of the caller: leave it out, or explain --policies`);
    const text = Array.isArray(value) ? value.join(' ') : String(value);
    return [field, field === 'aal' ? text.toLowerCase() : text] as const;
  });
  return { as: options.as, ...Object.fromEntries(fields) };
}
