// The interface between the page and the views in its side column.

import type { ProcessFeed } from "../processes/feed";
import type { Catalog } from "../series";
import type { Slice } from "../store";
import type { Machine } from "../topology";
import type { View } from "../view";
import type { WireLabel } from "../wire";

/** What the page shows now. */
export interface Visible {
  slice: Slice;
  /** The time range of the panels, in ms. */
  from: number;
  to: number;
  /** The cursor; without one, the end of the range. */
  at: number;
}

/** A view in the side column. */
export interface SideView {
  readonly element: HTMLElement;
  /** Numbers of the series that it needs now. The page requests them and passes them to `show`. */
  series(): number[];
  /** Shows the visible samples. The page calls this for every frame and every move of the cursor. */
  show(visible: Visible): void;
}

/** What the page gives to a side view. */
export interface SideContext {
  readonly catalog: Catalog;
  /** `null` if the source has no topology. */
  readonly machine: Machine | null;
  readonly view: View;
  readonly mayEdit: boolean;
  /** User labels of the source, newest first. Each change makes a new list. */
  labels(): readonly WireLabel[];
  /** The view needs other series, or changed the settings in `view`. */
  changed(): void;
  /** The processes of the machine; null if there is no server. */
  readonly processes: ProcessFeed | null;
  jump(ms: number): void;
  /** Shows a node alone in all panels; the one that is shown so, or null: all nodes. */
  showNode(node: number | null): void;
  /** Opens a panel. */
  openPanel(id: string): void;
  addLabel(): void;
  editLabel(label: WireLabel, text: string): void;
  removeLabel(label: WireLabel): void;
}

/** Makes a view; `null` if the source has no data for it. */
export type SideViewFactory = (context: SideContext) => SideView | null;
