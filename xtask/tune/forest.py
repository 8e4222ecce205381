"""forest.py N: a random forest of N trees."""
import sys
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

rows, labels = make_classification(n_samples=20_000, n_features=20, random_state=1)
forest = RandomForestClassifier(n_estimators=int(sys.argv[1]), n_jobs=-1, random_state=1)
print(forest.fit(rows, labels).score(rows, labels))
