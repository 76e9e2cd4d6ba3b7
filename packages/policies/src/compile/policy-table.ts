import { everyPath } from '../match/path-pattern.ts';
import { compileMatch, type RequestAttributes } from '../match/request-match.ts';
import type { PathSegments } from '../match/request-path.ts';
import { RouteTable } from '../match/route-table.ts';
import type { CompiledPolicy } from './compile.ts';

/** A policy that was compiled, and what decides between policies for the same host. */
export interface NamedPolicy {
  /** `namespace/name` */
  readonly name: string;
  /** Unix time in milliseconds. */
  readonly createdMs: number;
  readonly hosts: readonly string[];
  readonly policy: CompiledPolicy;
}

/** The policies in force by their hosts. Of two policies for a host, the older one applies. */
export class PolicyTable {
  /** Names of headers that policies compare or count by, in lower case. */
  readonly headers: ReadonlySet<string>;
  readonly #routes: RouteTable<CompiledPolicy>;

  constructor(policies: readonly NamedPolicy[]) {
    const every = compileMatch({ path: everyPath });
    const matches = every.ok ? [every.match] : [];
    this.headers = new Set(policies.flatMap(({ policy }) => policy.headers));
    this.#routes = new RouteTable(
      policies.map(({ name, createdMs, hosts, policy }) => ({
        hosts,
        matches,
        route: { name, createdMs },
        value: policy,
      })),
    );
  }

  /** @param path undefined for `OPTIONS *`, which belongs to the host, too */
  find(request: RequestAttributes, path: PathSegments | undefined): CompiledPolicy | undefined {
    return this.#routes.find(request, path ?? rootPath);
  }
}

const rootPath: PathSegments = { segments: [], hasTrailingSlash: false };
