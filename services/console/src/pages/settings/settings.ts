import { type Html, html } from '@tollgate/kit/html';
import type { ServiceSettings } from '@tollgate/kit/start-report';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { filters } from '../../ui/form.ts';
import { emptyState } from '../../ui/messages.ts';
import { table, withQuery } from '../../ui/table.ts';
import { badge, time, withCode } from '../../ui/text.ts';
import { authCoverage, coverage, settingsPage } from './page.ts';
import {
  mergeSettings,
  mergeWarnings,
  readReports,
  type ServiceSetting,
  type ServiceWarning,
  type Setting,
} from './reports.ts';

const pageSize = 100;

const showAll = 'all';

const names = {
  auth: 'Auth server',
  ratelimit: 'Rate limit service',
  xds: 'xDS server',
  console: 'Console',
} as const;

/** Name of a service for people. */
function serviceName(service: string): string {
  return Object.hasOwn(names, service) ? names[service as keyof typeof names] : service; // checked
}

const filterFields = [
  { name: 'find', label: 'Name or description', placeholder: 'SMTP, timeout …', isSearch: true },
  {
    name: 'show',
    label: 'Settings',
    choices: { '': 'Changed from default', [showAll]: 'All', different: 'Replicas differ' },
  },
  { name: 'service', label: 'Service', choices: { '': 'All', ...names } },
] as const;

/** Settings in force of all services, with the warnings of their starts. */
export async function viewSettings(visit: Visit): Promise<View> {
  const { reports, problems, results } = await readReports(visit);
  const content = html`${problems}${warningTable(mergeWarnings(reports), visit)}
${filters(filterFields, visit.url)}
${settingTable(mergeSettings(reports), visit)}
${replicaTable(reports, visit)}
${[...results].map(([service, ofService]) => {
  if (service === 'auth') return authCoverage(ofService, visit);
  return ofService.length > 0 && coverage(serviceName(service), ofService);
})}`;
  return settingsPage(visit, 'Settings', content);
}

function warningTable(warnings: readonly ServiceWarning[], { url }: Visit): Html {
  return table({
    caption: 'Warnings of the start',
    rows: warnings,
    url,
    empty: emptyState('No service has warned at its start.'),
    columns: [
      {
        title: 'Warning',
        cell: ({ warning: { level, message } }) =>
          html`${badge(level, level === 'error' ? 'bad' : 'warn')} ${message}`,
      },
      {
        title: 'Service',
        cell: ({ service, replicas }) =>
          html`${serviceName(service)}<div class="dim">${replicas.join(', ')}</div>`,
      },
      {
        title: 'Details',
        cell: ({ warning }) =>
          html`${Object.entries(warning.details).map(([name, value]) => html`<div><span class="dim">${name}</span> <code>${value}</code></div>`)}`,
      },
    ],
  });
}

function settingTable(all: readonly ServiceSetting[], visit: Visit): Html {
  const { url } = visit;
  const found = all.filter((one) => isWanted(one, visit));
  const start = readStart(visit.query('cursor'));
  const isAll = visit.query('show') === showAll;
  return table({
    caption: 'Settings in force',
    rows: found.slice(start, start + pageSize),
    url,
    nextCursor: start + pageSize < found.length ? String(start + pageSize) : undefined,
    empty: emptyState(
      isAll ? 'No setting matches these filters.' : 'No changed setting matches these filters.',
    ),
    note: html`${found.length} of ${all.length} settings. ${!isAll && html`<a href="${withQuery(url, { show: showAll, cursor: undefined })}">Search all</a>`}`,
    rowId: ({ service, setting }) => `setting-${service}-${setting.name}`,
    columns: [
      {
        title: 'Setting',
        cell: ({ setting: { name, description } }) =>
          html`<code>${name}</code><div class="dim">${withCode(description)}</div>`,
      },
      { title: 'Service', cell: ({ service }) => serviceName(service) },
      { title: 'Value', cell: valueCell },
      { title: 'Default', cell: ({ setting }) => (setting.secret ? undefined : valueText(setting.default)) },
      { title: 'Source', cell: ({ setting }) => sourceCell(setting) },
    ],
  });
}

function readStart(cursor: string | undefined): number {
  return cursor !== undefined && /^\d{1,9}$/.test(cursor) ? Number(cursor) : 0;
}

function isWanted({ service, setting, differences }: ServiceSetting, visit: Visit): boolean {
  const find = visit.query('find')?.toLowerCase();
  const show = visit.query('show');
  const wanted = visit.query('service');
  if (wanted !== undefined && service !== wanted) return false;
  if (show === 'different' && differences.length === 0) return false;
  if (show === undefined && !setting.changed && differences.length === 0) return false;
  const texts = [setting.name, setting.variable ?? '', setting.description];
  return find === undefined || texts.some((text) => text.toLowerCase().includes(find));
}

function valueCell({ setting, differences }: ServiceSetting): Html | undefined {
  if (differences.length === 0) return settingValue(setting);
  const values = differences.map(
    ({ replica, setting: own }) =>
      html`<div><span class="dim">${replica}</span> ${settingValue(own) ?? 'not set'}</div>`,
  );
  return html`${badge('replicas differ', 'warn')}${values}`;
}

/** Secrets have no value, and show only whether they are set. */
function settingValue(setting: Setting): Html | undefined {
  if (setting.secret) return setting.set ? badge('set') : undefined;
  return valueText(setting.value);
}

function valueText(value: string | undefined): Html | undefined {
  return value === undefined || value === '' ? undefined : html`<code class="wrap">${value}</code>`;
}

function sourceCell({ source, variable, from }: Setting): Html {
  return html`${source}${variable !== undefined && html` <code class="wrap">${variable}</code>`}${from !== undefined && html`<div class="dim">${from}</div>`}`;
}

function replicaTable(reports: readonly ServiceSettings[], { url, nowMs }: Visit): Html {
  return table({
    caption: 'Replicas that were asked',
    rows: reports,
    url,
    empty: emptyState('No replica answers.'),
    columns: [
      { title: 'Replica', cell: ({ replica }) => replica },
      { title: 'Service', cell: ({ service }) => serviceName(service) },
      { title: 'Version', cell: ({ version }) => version },
      { title: 'Started', cell: ({ started }) => time(started, nowMs) },
      { title: 'Warnings', isNumber: true, cell: ({ warnings }) => warnings.length },
    ],
  });
}
