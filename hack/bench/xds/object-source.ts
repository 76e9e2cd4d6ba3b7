/** Objects that a management server reads and the bench edits. */
export interface ObjectSource {
  /** As the tables call it. */
  readonly label: string;
  /** Settings of services/xds that lead there. */
  readonly settings: Readonly<Record<string, string>>;
  /** Makes the objects 0 … `count` − 1, all with the same limit. */
  fill(count: number, userLimit: number): Promise<void>;
  /** Changes one object; answers when that was done, by `monotonicMs`. */
  edit(index: number, userLimit: number): Promise<number>;
  close(): Promise<void>;
}
