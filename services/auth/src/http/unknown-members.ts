import type { Logger } from '@tollgate/kit/logger';
import { meantName } from '@tollgate/kit/spelling';
import type { FastifyRequest, RouteOptions } from 'fastify';
import { errors } from '../errors.ts';

/** Query parameters that any admin request may have: API gateways take keys as `apikey`. */
const commonParameters = ['redirect_to', 'apikey'];

/** A name is logged once. The bound holds for administrators who send ever new names. */
const maxLoggedNames = 200;
const maxNameChars = 64;

/** Where a name is looked up. */
interface MemberSource {
  readonly kind: 'body member' | 'query parameter';
  readonly known: readonly string[];
  /** Whether unknown names are errors. */
  readonly strict: boolean;
}

/**
 * Finds unknown body members and query parameters of admin requests. Misspellings of known ones
 * are rejected, as are all unknown parameters of lists: an ignored filter lists everything. Other
 * unknown names are ignored, as in GoTrue, and logged once.
 */
export class MemberGuard {
  readonly #logger: Logger;
  readonly #logged = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** A hook for after the validation of a request. */
  forRoute(
    route: Pick<RouteOptions, 'method' | 'url' | 'schema'>,
  ): (request: FastifyRequest) => Promise<void> {
    const { body, querystring } = route.schema ?? {};
    const isRead = [route.method].flat().every((method) => method === 'GET' || method === 'HEAD');
    const query: MemberSource = {
      kind: 'query parameter',
      known: [...propertyNames(querystring), ...commonParameters],
      strict: isRead && querystring !== undefined,
    };
    const members: MemberSource = { kind: 'body member', known: propertyNames(body), strict: false };
    return async (request) => {
      this.#check(route.url, query, request.query);
      if (members.known.length > 0) this.#check(route.url, members, request.body);
    };
  }

  #check(url: string, source: MemberSource, given: unknown): void {
    if (!isRecord(given)) return;
    const { kind, known, strict } = source;
    for (const name of Object.keys(given)) {
      if (known.includes(name)) continue;
      const shown = name.slice(0, maxNameChars);
      const meant = meantName(shown, known);
      if (meant !== undefined)
        throw errors.validation_failed({
          message: `unknown ${kind} ${JSON.stringify(shown)}: did you mean ${meant}?`,
        });
      if (strict)
        throw errors.validation_failed({
          message: `unknown ${kind} ${JSON.stringify(shown)}: known are ${known.filter((one) => !commonParameters.includes(one)).join(', ')}`,
        });
      this.#logOnce(url, kind, shown);
    }
  }

  #logOnce(route: string, kind: MemberSource['kind'], name: string): void {
    const key = `${route} ${kind} ${name}`;
    if (this.#logged.has(key) || this.#logged.size >= maxLoggedNames) return;
    this.#logged.add(key);
    this.#logger.warn({ route, kind, name }, 'ignoring unknown name in admin requests');
  }
}

/** Names of the members of an object schema. */
function propertyNames(schema: unknown): string[] {
  return isRecord(schema) && isRecord(schema.properties) ? Object.keys(schema.properties) : [];
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
