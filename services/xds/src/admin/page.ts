import type { LimiterClient } from '../ads/limiters.ts';
import type { PipelineState } from '../catalog/pipeline.ts';
import type { Snapshot, SnapshotResource } from '../catalog/snapshot.ts';
import { outageText } from '../sources/source.ts';
import type { Condition } from '../status/conditions.ts';
import { type Html, html, type PageOf, pageOf, pageStyle } from './html.ts';
import { type AdminState, notReadyReason, type ObjectRow, rowOf } from './server.ts';

/** Rows of each table: as many as a person looks through; who looks for something else asks for it by name. */
const maxRows = 100;

/** Longest version that is shown; all of it is in the JSON. */
const versionLength = 12;

/** What a visitor asks for. */
export interface DebugQuery {
  /** Only what has this in its name. */
  readonly find: string;
}

/** The page for people: domains, objects with their conditions, limiters, the source. One document, without scripts. */
export function debugPage(admin: AdminState, { find }: DebugQuery): string {
  const state = admin.pipeline.state();
  const snapshot = admin.snapshots.current();
  const page = html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Tollgate xDS</title>
<style>${{ html: pageStyle }}</style></head>
<body>
<h1>Tollgate xDS</h1>
${summary(admin, state, snapshot)}
${notices(admin, state)}
<form><label>Show only <input name="find" value="${find}"></label> <button>Find</button></form>
${refusedObjects(state, find)}
${domains(snapshot, find)}
${objects(state, find)}
${limiters(admin, find)}
</body>
</html>
`;
  return page.html;
}

function summary(
  { clients, sourceName, nowMs }: AdminState,
  state: PipelineState,
  snapshot: Snapshot | undefined,
): Html {
  const { lastEventMs, verdicts, rules, limitersElsewhere } = state;
  const age = lastEventMs === undefined ? 'nothing heard yet' : `last change ${ago(nowMs() - lastEventMs)}`;
  return html`<dl>
<dt>Serving</dt><dd>${snapshot === undefined ? 'nothing yet' : html`${counted(rules, 'limit')} in ${counted(snapshot.resources.size, 'domain')}, version <code>${snapshot.version}</code>`}</dd>
<dt>Source</dt><dd>${sourceName}, ${counted(verdicts.size, 'object')}, ${age}</dd>
<dt>Limiters</dt><dd>${clients.size} connected${limitersElsewhere > 0 ? ` and ${limitersElsewhere} at other replicas` : ''}</dd>
<dt>More</dt><dd><a href="/snapshot">/snapshot</a> <a href="/objects">/objects</a> <a href="/metrics">/metrics</a> <a href="/readyz">/readyz</a></dd>
</dl>`;
}

/** What an operator should know before anything else. */
function notices(admin: AdminState, { emptyHeldBack, outages, synced, problems }: PipelineState): Html {
  const reason = notReadyReason(admin);
  const lines: Html[] = [];
  if (reason !== undefined) lines.push(html`<p class="notice">Not ready: ${reason}</p>`);
  if (emptyHeldBack && reason === undefined)
    lines.push(
      html`<p class="notice">There is no limit left. Limiters keep those they have, because XDS_ALLOW_EMPTY=false.</p>`,
    );
  // Before that, it is why the service is not ready.
  if (synced && outages.length > 0)
    lines.push(
      html`<p class="notice">Objects cannot be followed; those that are known stay: ${outageText(outages)}</p>`,
    );
  if (problems.length > 0) {
    const shown = problems.slice(0, maxRows);
    const items = shown.map(({ source, message }) => html`<li class="message">${source}: ${message}</li>`);
    lines.push(
      html`<div class="notice">The source has what is no object:<ul>${items}</ul>${more(problems.length - shown.length)}</div>`,
    );
  }
  return html`${lines}`;
}

function refusedObjects(state: PipelineState, find: string): Html | undefined {
  const refused = [...state.verdicts].filter(([, { accepted }]) => accepted.status !== 'True');
  if (refused.length === 0) return undefined;
  const rows = found(refused, find, (id, { domain }) => [id, domain]);
  return section('Objects that are not accepted', rows, ['Object', 'Why', 'In force'], (verdict) => {
    const { id, label, accepted, inForce } = rowOf(verdict, state);
    return html`<td>${objectName(id, label)}</td><td>${condition(accepted)}</td><td>${inForce === undefined ? 'nothing' : `generation ${inForce}`}</td>`;
  });
}

function domains(snapshot: Snapshot | undefined, find: string): Html {
  const rows = found([...(snapshot?.resources ?? [])], find, (name) => [name]);
  return section('Domains', rows, ['Domain', 'Version', 'Bytes'], domainCells);
}

function domainCells({ name, version, any }: SnapshotResource): Html {
  const link = `/snapshot?domain=${encodeURIComponent(name)}`;
  return html`<td><a href="${link}">${name}</a></td><td>${shortVersion(version)}</td><td>${any.length}</td>`;
}

function objects(state: PipelineState, find: string): Html {
  const rows = found([...state.verdicts], find, (id, { domain }) => [id, domain]);
  const heads = ['Object', 'Domain', 'Generation', 'Limits', 'Accepted', 'Programmed'];
  return section('Objects', rows, heads, (verdict) => objectCells(rowOf(verdict, state)));
}

function objectCells({ id, label, domain, generation, rules, accepted, programmed }: ObjectRow): Html {
  return html`<td>${objectName(id, label)}</td><td>${domain}</td><td>${generation}</td><td>${rules}</td><td class="${accepted.status}">${accepted.reason}</td><td>${programmed && condition(programmed)}</td>`;
}

function limiters({ clients, nowMs }: AdminState, find: string): Html {
  const all = [...clients.all()].map((client): [string, LimiterClient] => [
    `${client.nodeId} ${client.peer} ${client.id}`,
    client,
  ]);
  const rows = found(all, find, (_, { nodeId, identity, peer }) => [nodeId, identity, peer]);
  const heads = ['Node', 'Address', 'Protocol', 'Connected', 'Accepted version', 'Rejection'];
  return section('Limiters', rows, heads, (client) => limiterCells(client, nowMs()));
}

function limiterCells(client: LimiterClient, nowMs: number): Html {
  const { nodeId, identity, peer, protocol, connectedMs, acceptedVersion, rejection } = client;
  const accepted =
    acceptedVersion === undefined ? html`<span class="dim">none yet</span>` : shortVersion(acceptedVersion);
  const refused =
    rejection &&
    html`<span class="False">refused ${shortVersion(rejection.snapshotVersion)} ${ago(nowMs - rejection.atMs)}</span><div class="message">${rejection.message}</div>`;
  return html`<td>${nodeId}${identity === '' ? undefined : html`<br><span class="dim">${identity}</span>`}</td><td>${peer}</td><td>${protocol}</td><td>${ago(nowMs - connectedMs)}</td><td>${accepted}</td><td>${refused}</td>`;
}

/** The first rows of those that were asked for, and how many there are whatever was asked for. */
interface Found<T> extends PageOf<T> {
  readonly of: number;
}

function found<T>(
  all: readonly [string, T][],
  find: string,
  namesOf: (key: string, row: T) => readonly (string | undefined)[],
): Found<T> {
  const fitting = all.filter(([key, row]) => matches(find, ...namesOf(key, row)));
  return { ...pageOf(fitting, { after: '', limit: maxRows }), of: all.length };
}

function section<T>(title: string, rows: Found<T>, heads: readonly string[], cells: (row: T) => Html): Html {
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

const counted = (count: number, noun: string): string => `${count} ${count === 1 ? noun : `${noun}s`}`;

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

function ago(ms: number): string {
  if (ms < 2 * minute) return `${Math.max(0, Math.round(ms / second))} s ago`;
  return ms < 2 * hour ? `${Math.round(ms / minute)} min ago` : `${Math.round(ms / hour)} h ago`;
}
