import { type Html, html } from '@tollgate/kit/html';
import { operatorPage } from '@tollgate/kit/operator-page';
import type { Client, ClientRegistry } from '../ads/clients.ts';
import type { CommonSnapshot, SnapshotResource } from '../catalog/snapshot.ts';
import { formatOutages } from '../catalog/source.ts';
import type { Condition, ValidationResult } from '../catalog/validation-result.ts';
import { type Page, paginate } from '../paging.ts';
import type { PipelineState } from '../pipeline-options.ts';
import { formatFinding, type PolicyResult } from '../policies/policy-result.ts';
import { notReadyReason, policyProblem, type ServerState } from '../server-state.ts';

/** An object as the pages show it. Without `programmed` until the first status of a new object. */
export function toObjectRow(result: ValidationResult, { statuses, limitersOf }: PipelineState) {
  const { id, label, domain, limiterClass, generation, inForce, rules, accepted } = result;
  const { programmed } = statuses.get(id) ?? {};
  const { connected = 0, acknowledged = 0 } = limitersOf(result) ?? {};
  const limiters = { connected, acknowledged: inForce === undefined ? 0 : acknowledged };
  return { id, label, domain, limiterClass, generation, inForce, rules, accepted, programmed, limiters };
}

/** Rows of each table. */
const maxRows = 100;

/** Characters of a version; the JSON has all of them. */
const versionLength = 12;

/** Renders the state of the server; `find` filters by name. One document, no scripts. */
export function renderDebugPage(admin: ServerState, find: string): string {
  const state = admin.pipeline.state();
  const snapshot = admin.snapshots.current();
  const content = html`${summary(admin, state, snapshot)}
${notices(admin, state)}
<form><label>Show only <input name="find" value="${find}"></label> <button>Find</button></form>
${notAcceptedObjects(state, find)}
${domainTable(snapshot, find)}
${objectTable(state, find)}
${policyTable(admin, find)}
${clientTable('Limiters', admin.limiters, { admin, find })}
${admin.policies && clientTable('Auth servers', admin.authServers.clients, { admin, find })}`;
  return operatorPage('Tollgate xDS', content);
}

function summary(
  { limiters, sourceName, nowMs }: ServerState,
  state: PipelineState,
  snapshot: CommonSnapshot | undefined,
): Html {
  const { lastEventMs, results, rules, limitersElsewhere } = state;
  const age = lastEventMs === undefined ? 'no event yet' : `last change ${ago(nowMs() - lastEventMs)}`;
  return html`<dl>
<dt>Serving</dt><dd>${snapshot === undefined ? 'nothing yet' : html`${formatCount(rules, 'limit')} in ${formatCount(snapshot.resources.size, 'domain')}, version <code>${snapshot.version}</code>`}</dd>
<dt>Source</dt><dd>${sourceName}, ${formatCount(results.size, 'object')}, ${age}</dd>
<dt>Limiters</dt><dd>${limiters.size} connected${limitersElsewhere > 0 ? ` and ${limitersElsewhere} at other replicas` : ''}</dd>
<dt>More</dt><dd><a href="/snapshot">/snapshot</a> <a href="/objects">/objects</a> <a href="/metrics">/metrics</a> <a href="/readyz">/readyz</a></dd>
</dl>`;
}

/** Notices for an operator, the most important first. */
function notices(
  admin: ServerState,
  { emptyHeldBack, hold, outages, synced, problems }: PipelineState,
): Html {
  const reason = notReadyReason(admin);
  const lines: Html[] = [];
  if (reason !== undefined) lines.push(html`<p class="notice">Not ready: ${reason}</p>`);
  if (emptyHeldBack && reason === undefined)
    lines.push(
      html`<p class="notice">There are no limits left. Limiters keep theirs, because XDS_ALLOW_EMPTY=false.</p>`,
    );
  if (hold !== undefined)
    lines.push(
      html`<p class="notice">Deletions are held back: ${hold.reason}. The limits of ${formatCount(hold.objects, 'deleted object')} in ${formatCount(hold.domains, 'domain')} stay in force, and no other deletion takes effect. They return when the objects exist again. To let the deletions through, run: <code>${hold.command}</code></p>`,
    );
  // Before it has synced, outages are the reason why the service is not ready.
  if (synced && outages.length > 0)
    lines.push(
      html`<p class="notice">The source cannot be followed, and known objects stay: ${formatOutages(outages)}</p>`,
    );
  if (problems.length > 0) {
    const shown = problems.slice(0, maxRows);
    const items = shown.map(({ source, message }) => html`<li class="message">${source}: ${message}</li>`);
    lines.push(
      html`<div class="notice">Invalid content in the source:<ul>${items}</ul>${more(problems.length - shown.length)}</div>`,
    );
  }
  return html`${lines}`;
}

function notAcceptedObjects(state: PipelineState, find: string): Html | undefined {
  const rejected = [...state.results].filter(([, { accepted }]) => accepted.status !== 'True');
  if (rejected.length === 0) return undefined;
  const rows = findRows(rejected, find, (id, { domain }) => [id, domain]);
  return section('Objects that are not accepted', rows, ['Object', 'Why', 'In force'], (result) => {
    const { id, label, accepted, inForce } = toObjectRow(result, state);
    return html`<td>${objectName(id, label)}</td><td>${condition(accepted)}</td><td>${inForce === undefined ? 'nothing' : `generation ${inForce}`}</td>`;
  });
}

function domainTable(snapshot: CommonSnapshot | undefined, find: string): Html {
  const sets = snapshot === undefined ? [] : [['', snapshot.resources] as const, ...snapshot.classes];
  const all = sets.flatMap(([limiterClass, resources]) =>
    [...resources.values()].map((resource): [string, DomainRow] => [
      resource.name,
      { limiterClass, resource },
    ]),
  );
  const rows = findRows(all, find, (name, { limiterClass }) => [name, limiterClass]);
  return section('Domains', rows, ['Domain', 'Class', 'Version', 'Bytes'], domainCells);
}

interface DomainRow {
  /** Empty for limiters without a class. */
  readonly limiterClass: string;
  readonly resource: SnapshotResource;
}

function domainCells({ limiterClass, resource: { name, version, any } }: DomainRow): Html {
  const ofClass = limiterClass === '' ? '' : `&class=${limiterClass}`;
  const link = `/snapshot?domain=${encodeURIComponent(name)}${ofClass}`;
  return html`<td><a href="${link}">${name}</a></td><td>${limiterClass}</td><td>${shortVersion(version)}</td><td>${any.length}</td>`;
}

function objectTable(state: PipelineState, find: string): Html {
  const rows = findRows([...state.results], find, (id, { domain }) => [id, domain]);
  const heads = ['Object', 'Domain', 'Generation', 'Limits', 'Accepted', 'Programmed'];
  return section('Objects', rows, heads, (result) => objectCells(toObjectRow(result, state)));
}

function objectCells(row: ReturnType<typeof toObjectRow>): Html {
  const { id, label, domain, generation, rules, accepted, programmed } = row;
  return html`<td>${objectName(id, label)}</td><td>${domain}</td><td>${generation}</td><td>${rules}</td><td class="${accepted.status}">${accepted.reason}</td><td>${programmed && condition(programmed)}</td>`;
}

function policyTable({ policies, policyStatuses }: ServerState, find: string): Html | undefined {
  if (policies === undefined) return undefined;
  const { hold, results } = policies.state();
  const problem = policyProblem(policies);
  const notServed = problem && html`<p class="notice">Access policies: ${problem}</p>`;
  const held =
    hold &&
    html`<p class="notice">Deletions of policies are held back: ${hold.reason}. ${formatCount(hold.objects, 'deleted policy', 'deleted policies')} stay in force until they exist again. To let the deletions through, run: <code>${hold.command}</code></p>`;
  const all = [...results.values()].map((result): [string, PolicyResult] => [
    `${result.namespace}/${result.name}`,
    result,
  ]);
  const rows = findRows(all, find, (name) => [name]);
  const heads = ['Policy', 'Generation', 'In force', 'Programmed', 'Problems and warnings'];
  const cells = (result: PolicyResult) => policyCells(result, policyStatuses?.programmedOf(result.id));
  return html`${section('Access policies', rows, heads, cells)}${notServed}${held}`;
}

function policyCells(result: PolicyResult, programmed: Condition | undefined): Html {
  const { namespace, name, label, generation, inForce, problems, warnings, ancestors } = result;
  const toLine = (level: 'False' | 'Pending', reason: string, message: string) =>
    html`<div class="message"><span class="${level}">${reason}</span> ${message}</div>`;
  const lines = [
    ...problems.map((problem) => toLine('False', problem.reason, formatFinding(problem))),
    ...ancestors.flatMap(({ unenforced }) =>
      unenforced === undefined ? [] : toLine('False', unenforced.reason, unenforced.message),
    ),
    ...warnings.map((warning) => toLine('Pending', warning.reason, formatFinding(warning))),
  ];
  const served = inForce === undefined ? 'nothing: its hosts are denied' : `generation ${inForce.generation}`;
  return html`<td>${objectName(`${namespace}/${name}`, label)}</td><td>${generation}</td><td>${served}</td><td>${programmed && condition(programmed)}</td><td>${lines}</td>`;
}

function clientTable(
  title: string,
  clients: ClientRegistry,
  { admin, find }: { readonly admin: ServerState; readonly find: string },
): Html {
  const all = [...clients.all()].map((client): [string, Client] => [
    `${client.nodeId} ${client.peer} ${client.id}`,
    client,
  ]);
  const rows = findRows(all, find, (_, { nodeId, identity, peer }) => [nodeId, identity, peer]);
  const heads = ['Node', 'Class', 'Address', 'Protocol', 'Connected', 'Accepted version', 'Rejection'];
  return section(title, rows, heads, (client) => clientCells(client, admin.nowMs()));
}

function clientCells(client: Client, nowMs: number): Html {
  const { nodeId, identity, limiterClass, peer, protocol, connectedMs } = client;
  const { acceptedVersion, rejection } = client;
  const accepted =
    acceptedVersion === undefined ? html`<span class="dim">none yet</span>` : shortVersion(acceptedVersion);
  const refused =
    rejection &&
    html`<span class="False">refused ${shortVersion(rejection.snapshotVersion)} ${ago(nowMs - rejection.atMs)}</span><div class="message">${rejection.message}</div>`;
  return html`<td>${nodeId}${identity === '' ? undefined : html`<br><span class="dim">${identity}</span>`}</td><td>${limiterClass}</td><td>${peer}</td><td>${protocol}</td><td>${ago(nowMs - connectedMs)}</td><td>${accepted}</td><td>${refused}</td>`;
}

/** The first matching rows. */
interface Rows<T> extends Page<T> {
  /** Number of rows without the filter. */
  readonly of: number;
}

function findRows<T>(
  all: readonly [string, T][],
  find: string,
  getNames: (key: string, row: T) => readonly (string | undefined)[],
): Rows<T> {
  const matching = all.filter(([key, row]) => matches(find, ...getNames(key, row)));
  return { ...paginate(matching, { after: '', limit: maxRows }), of: all.length };
}

function section<T>(title: string, rows: Rows<T>, heads: readonly string[], cells: (row: T) => Html): Html {
  const count = rows.total === rows.of ? `${rows.of}` : `${rows.total} of ${rows.of}`;
  const body = rows.items.map((row) => html`<tr>${cells(row)}</tr>\n`);
  const head = heads.map((name) => html`<th>${name}</th>`);
  const table = html`<div class="table"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
  return html`<h2>${title} (${count})</h2>${rows.total === 0 ? html`<p class="dim">${rows.of === 0 ? 'none' : 'none with that in its name'}</p>` : table}${more(rows.total - rows.items.length)}`;
}

const more = (left: number): Html | undefined =>
  left > 0 ? html`<p class="dim">and ${left} more; find them by name, or in the JSON</p>` : undefined;

const objectName = (id: string, label: string): Html =>
  label === id ? html`${id}` : html`${id}<br><span class="dim">${label}</span>`;

function condition({ status, reason, message }: Condition): Html {
  const look = reason === 'Pending' ? reason : status;
  return html`<span class="${look}">${reason}</span><div class="message">${message}</div>`;
}

const shortVersion = (version: string): Html =>
  html`<code title="${version}">${version.slice(0, versionLength)}</code>`;

const matches = (find: string, ...names: readonly (string | undefined)[]): boolean =>
  find === '' || names.some((name = '') => name.includes(find));

const formatCount = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : plural}`;

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

function ago(ms: number): string {
  if (ms < 2 * minute) return `${Math.max(0, Math.round(ms / second))} s ago`;
  return ms < 2 * hour ? `${Math.round(ms / minute)} min ago` : `${Math.round(ms / hour)} h ago`;
}
