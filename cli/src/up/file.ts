import { meantName } from '@tollgate/kit/spelling';
import { isMapping } from '@tollgate/rules/resource-fields';
import { parse, type YamlDocument } from '@tollgate/yaml/documents';
import { checkPolicy, type FieldProblem, type PolicyFields } from './policy.ts';
import { defaultPorts, type PortName, type Ports, settingOf } from './ports.ts';

/** A valid file. */
export interface UpFile {
  /** The application. */
  readonly upstream: { readonly host: string; readonly port: number };
  readonly ports: Ports;
  /** URL of Redis; counters are kept in memory without one. */
  readonly redis: string | undefined;
  readonly policy: PolicyFields;
  /** Sentences about limits that have less effect than intended, with their lines. */
  readonly warnings: readonly string[];
}

/** A valid file, or everything that is wrong with it: sentences with lines. */
export type ReadUpFile =
  | { readonly ok: true; readonly file: UpFile }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Fields that say where everything is. The others are those of an AccessPolicy. */
const placeFields = ['listen', 'upstream', 'redis', 'ports'] as const;
const policyFields = ['access', 'routes', 'limits'] as const;
const fields = [...placeFields, ...policyFields];

const example = 'such as http://127.0.0.1:3000';

/** Reads a file. @param name before each line number */
export function readUpFile(text: string, name: string): ReadUpFile {
  const parsed = parse({ text, linesBefore: 0 });
  if (!parsed.ok) {
    const { position, reason } = parsed.error;
    return { ok: false, problems: [`${name}${position ? `:${position.line}` : ''}: ${reason}`] };
  }
  const [document, second] = parsed.documents;
  if (document === undefined || !isMapping(document.value))
    return { ok: false, problems: [`${name}: expected fields: upstream: http://127.0.0.1:3000`] };
  const toSentence = ({ path, message }: FieldProblem) => `${name}:${lineOf(document, path)}: ${message}`;
  if (second !== undefined)
    return { ok: false, problems: [`${name}: has several documents: keep one, remove the line ---`] };
  const problems: FieldProblem[] = [];
  const places = readPlaces(document.value, problems);
  const { access, routes, limits } = document.value;
  const policy = checkPolicy({ access, routes, limits });
  problems.push(...policy.problems);
  if (problems.length > 0 || policy.fields === undefined || places === undefined)
    return { ok: false, problems: problems.map(toSentence) };
  return { ok: true, file: { ...places, policy: policy.fields, warnings: policy.warnings.map(toSentence) } };
}

/** A field that is missing has the line of its parent. */
function lineOf(document: YamlDocument, path: string): number {
  return document.positionOf(path).line;
}

type Values = Readonly<Record<string, unknown>>;

function readPlaces(
  values: Values,
  problems: FieldProblem[],
): Pick<UpFile, 'upstream' | 'ports' | 'redis'> | undefined {
  reportUnknown(values, '', { known: fields, problems });
  const ports = readPorts(values, problems);
  const redis = readRedis(values.redis, problems);
  const upstream = readUpstream(values.upstream);
  if (upstream === undefined)
    problems.push({ path: 'upstream', message: `upstream must be the URL of your application, ${example}` });
  return upstream && { upstream, ports, redis };
}

function reportUnknown(
  values: Values,
  path: string,
  { known, problems }: { readonly known: readonly string[]; readonly problems: FieldProblem[] },
): void {
  for (const name of Object.keys(values).filter((key) => !known.includes(key))) {
    const meant = meantName(name, known);
    const remedy = meant === undefined ? `expected one of ${known.join(', ')}` : `did you mean ${meant}?`;
    problems.push({ path: `${path}${name}`, message: `unknown field ${name}: ${remedy}` });
  }
}

/** Requests reach it as they are, so that its URL has neither path nor credentials. */
function readUpstream(value: unknown): UpFile['upstream'] | undefined {
  if (typeof value !== 'string' || !URL.canParse(value)) return undefined;
  const { protocol, hostname, port, pathname, search, username } = new URL(value);
  if (protocol !== 'http:' || hostname === '' || pathname !== '/' || search !== '' || username !== '')
    return undefined;
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 80) };
}

function readRedis(value: unknown, problems: FieldProblem[]): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'string' && /^rediss?:\/\/./.test(value) && URL.canParse(value)) return value;
  problems.push({ path: 'redis', message: 'redis must be a URL such as redis://127.0.0.1:6379' });
  return undefined;
}

function readPorts({ listen, ports: given = {} }: Values, problems: FieldProblem[]): Ports {
  const ports: Record<PortName, number> = { ...defaultPorts };
  const names = Object.keys(ports) as PortName[]; // of exactly these keys
  const inner = names.filter((name) => name !== 'envoy');
  if (isMapping(given)) reportUnknown(given, 'ports.', { known: inner, problems });
  else problems.push({ path: 'ports', message: 'ports must have fields: ports: { authHttp: 9002 }' });
  const values: Values = { ...(isMapping(given) && given), envoy: listen };
  for (const name of names) {
    const { [name]: value } = values;
    if (value === undefined) continue;
    const path = settingOf(name);
    if (isPort(value)) ports[name] = value;
    else problems.push({ path, message: `${path} must be a TCP port, 1 to 65535, on the loopback address` });
  }
  for (const [index, name] of names.entries()) {
    const same = names.slice(0, index).find((other) => ports[other] === ports[name]);
    const path = settingOf(values[name] === undefined && same ? same : name);
    if (same !== undefined)
      problems.push({
        path,
        message: `${settingOf(same)} and ${settingOf(name)} are both ${ports[name]}: change one of them`,
      });
  }
  return ports;
}

function isPort(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= 65_535;
}
