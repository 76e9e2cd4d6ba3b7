import { type RouteKind, toList, toText, toValues, type Values } from './objects.ts';

/** A match of a route as JSON, in the form of a match of an AccessPolicy. */
export function toMatchJson(kind: RouteKind, match: Values): string {
  return JSON.stringify(kind === 'HTTPRoute' ? toHttpMatch(match) : toGrpcMatch(match));
}

function toHttpMatch({ path, method, headers, queryParams }: Values): Values {
  const { type = 'PathPrefix', value = '/' } = toValues(path);
  return {
    path: { type, value },
    ...(method === undefined ? undefined : { methods: [method] }),
    ...toCompared('headers', headers),
    ...toCompared('queryParams', queryParams),
  };
}

function toCompared(name: string, values: unknown): Values | undefined {
  const list = toList(values).map(({ type = 'Exact', name, value }) => ({ type, name, value }));
  return list.length === 0 ? undefined : { [name]: list };
}

/** A call of `package.Service/Method` has the path `/package.Service/Method`. */
function toGrpcMatch({ method, headers }: Values): Values {
  const { type = 'Exact', ...names } = toValues(method);
  const [service, name] = [toText(names.service), toText(names.method)];
  return { ...toGrpcPath(type, service, name), ...toCompared('headers', headers) };
}

const anySegment = '[^/]+';

function toGrpcPath(type: unknown, service: string | undefined, method: string | undefined) {
  if (service === undefined && method === undefined) return undefined;
  if (type === 'Exact' && service !== undefined)
    return {
      path:
        method === undefined
          ? { type: 'PathPrefix', value: `/${service}` }
          : { type: 'Exact', value: `/${service}/${method}` },
    };
  const toPattern = (name: string | undefined): string => {
    if (name === undefined) return anySegment;
    return type === 'Exact' ? escapeRegularExpression(name) : `(?:${name})`;
  };
  return { path: { type: 'RegularExpression', value: `/${toPattern(service)}/${toPattern(method)}` } };
}

const escapeRegularExpression = (text: string): string => text.replaceAll(/[^A-Za-z0-9_]/g, String.raw`\$&`);
