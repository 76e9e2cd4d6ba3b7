import type { YamlNode } from '@tollgate/yaml/tree';
import type { LimitDescriptor } from '../compile/limits.ts';
import type { FieldReader, Report } from './field-reader.ts';
import { limitAttributes, toLimit } from './route-rules.ts';

/** Envoy's filter sends as many per request at most, and each costs a counter. */
const maxDescriptors = 10;

/** Attributes that not every installation has. Mappings may set all but `key_id`. */
const optional: ReadonlySet<string> = new Set(['key_id', 'client_id', 'org_id', 'org_role', 'scope']);
const ofIssuers: ReadonlySet<string> = new Set(['client_id', 'scope']);
const ofClients: ReadonlySet<string> = new Set(['client_id', 'scope', 'org_id']);
const ofOrganizations: ReadonlySet<string> = new Set(['org_id', 'org_role']);
const ofApiKeys: ReadonlySet<string> = new Set(['key_id', 'org_id', 'scope']);

interface LimitReaderOptions {
  readonly reader: FieldReader;
  readonly report: Report;
  /** Attributes that the file adds. */
  readonly addedAttributes: readonly string[];
  /** Attributes of callers that a mapping of the file sets. */
  readonly mapped: ReadonlySet<string>;
  readonly hasIssuers: boolean;
  readonly hasOrganizations: boolean;
  readonly hasClients: boolean;
  readonly hasApiKeys: boolean;
}

/** Reads descriptors, of which each is a list of attributes. An empty list is no limit. */
export class LimitReader {
  readonly #options: LimitReaderOptions;
  readonly #names: readonly string[];

  constructor(options: LimitReaderOptions) {
    this.#options = options;
    this.#names = [...limitAttributes, ...options.addedAttributes];
  }

  read(value: YamlNode): readonly LimitDescriptor[] {
    const { reader, report } = this.#options;
    const items = reader.items(value);
    if (items.length > maxDescriptors)
      report(value.position, `too many descriptors: ${items.length}, the limit is ${maxDescriptors}`);
    const known = new Set<string>();
    return items.slice(0, maxDescriptors).map((item) => {
      const attributes = reader.list(item, (name) => reader.oneOf(name, this.#names));
      const text = attributes.join(', ');
      const unset = attributes.find((name) => !this.#isSet(name));
      // The descriptor would never be sent.
      if (unset !== undefined) report(item.position, `no caller has ${unset}: set it by claims`);
      else if (new Set(attributes).size < attributes.length)
        report(item.position, `[${text}] has an attribute twice`);
      else if (text !== '' && known.has(text)) report(item.position, `duplicate descriptor [${text}]`);
      known.add(text);
      return toLimit(attributes);
    });
  }

  #isSet(name: string): boolean {
    const { mapped, hasIssuers, hasOrganizations, hasClients, hasApiKeys } = this.#options;
    return (
      !optional.has(name) ||
      mapped.has(name) ||
      (hasIssuers && ofIssuers.has(name)) ||
      (hasClients && ofClients.has(name)) ||
      (hasOrganizations && ofOrganizations.has(name)) ||
      (hasApiKeys && ofApiKeys.has(name))
    );
  }
}
