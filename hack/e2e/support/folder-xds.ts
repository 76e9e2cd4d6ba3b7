import { makeTextFolder } from '@tollgate/testkit/folders';
import type { Test } from 'tap';
import { domain } from './envoy-config.ts';
import { manifest } from './manifest.ts';
import { startXds, type XdsProcess } from './xds-process.ts';

/** A management server whose rules a test writes. */
export interface FolderXds extends XdsProcess {
  /** Sets the requests a year that each tenant has. */
  allow(requestsPerYear: number): void;
}

/** Starts a management server of a folder in which each tenant has so many requests a year. It is stopped when the test ends. */
export async function startFolderXds(t: Test, requestsPerYear: number): Promise<FolderXds> {
  const folder = makeTextFolder(t);
  const allow = (tenant: number) =>
    folder.write('tenants.json', manifest({ name: 'tenants', domain, unit: 'Year', limits: { tenant } }));
  allow(requestsPerYear);
  const xds = await startXds({ XDS_SOURCE: 'folder', XDS_FOLDER: folder.path });
  t.teardown(xds.stop);
  return { ...xds, allow };
}
